package gopeer

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Methods of the service.
const (
	serviceName = "datxdp.peers.Messages"
	methodCall  = "Call"
	methodEcho  = "Echo"
	methodSink  = "Sink"
)

// message is a protobuf message with one field of bytes, for gRPC's default codec.
type message = wrapperspb.BytesValue

func service() *grpc.ServiceDesc {
	stream := func(name string, serve func(pipe) error) grpc.StreamDesc {
		return grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return serve(&streamPipe{stream: s}) }}
	}
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: methodCall, Handler: answer}},
		Streams:     []grpc.StreamDesc{stream(methodEcho, echo), stream(methodSink, sink)},
	}
}

// answer implements the unary method: it returns the request.
func answer(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	m := &message{}
	return m, decode(m)
}

func serveGRPC(ctx context.Context, e End, ready func()) error {
	l, err := e.listen(ctx)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(2*maxSize), grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window))
	s.RegisterService(service(), struct{}{})
	defer context.AfterFunc(ctx, s.Stop)()
	ready()
	return s.Serve(l)
}

func runGRPC(ctx context.Context, e End, a Ask) (tally, error) {
	conn, err := grpc.NewClient("passthrough:///"+e.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return e.dial(ctx) }),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*maxSize)))
	if err != nil {
		return tally{}, err
	}
	defer conn.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if a.Unary {
		var in, out message
		return a.over(&requestPipe{request: func(m []byte) ([]byte, error) {
			out.Value = m
			err := conn.Invoke(ctx, "/"+serviceName+"/"+methodCall, &out, &in)
			return in.Value, err
		}})
	}
	method := methodSink
	if a.echoed() {
		method = methodEcho
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+serviceName+"/"+method)
	if err != nil {
		return tally{}, err
	}
	return a.over(&streamPipe{stream: s})
}

// streamPipe is a gRPC stream, which gathers writes by itself.
type streamPipe struct {
	stream interface {
		SendMsg(any) error
		RecvMsg(any) error
	}
	in, out message
}

func (p *streamPipe) send(m []byte) error {
	p.out.Value = m
	return p.stream.SendMsg(&p.out) // SendMsg encodes the message before it returns
}

func (*streamPipe) flush() error { return nil }

func (p *streamPipe) recv() ([]byte, error) {
	err := p.stream.RecvMsg(&p.in)
	if err == nil && len(p.in.Value) < minSize {
		err = fmt.Errorf("message of %d bytes: want %d or more", len(p.in.Value), minSize)
	}
	return p.in.Value, err
}
