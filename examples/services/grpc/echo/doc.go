// Package echo is generated from echo.proto: the messages, the client and the server of the service. Generating needs
// protoc, protoc-gen-go and protoc-gen-go-grpc.
package echo

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative echo.proto
