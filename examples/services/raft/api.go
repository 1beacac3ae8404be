package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/raft"
)

// leaderHeader names the leader, in the answer of another node.
const leaderHeader = "Leader"

// maxCommand is the number of bytes of a command.
const maxCommand = 64 << 10

// handler answers clients. The status tells them whether a command without a result may have an effect: it has none
// after StatusMisdirectedRequest (this node is no leader) and StatusServiceUnavailable; it may have one after all
// others, such as StatusGatewayTimeout.
func (n *node) handler(patience time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /command", func(w http.ResponseWriter, r *http.Request) {
		cmd, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCommand))
		if err == nil {
			err = json.Unmarshal(cmd, &command{})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		f := n.raft.Apply(cmd, patience)
		if err := f.Error(); err != nil {
			_, leader := n.raft.LeaderWithID()
			w.Header().Set(leaderHeader, string(leader))
			http.Error(w, err.Error(), statusOf(err))
			return
		}
		answer := f.Response().(result)
		answer.Node = n.self
		_ = json.NewEncoder(w).Encode(answer) // the client misses the answer
	})
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(n.store.state())
	})
	return mux
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, raft.ErrNotLeader):
		return http.StatusMisdirectedRequest
	case errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return http.StatusServiceUnavailable
	default: // such as ErrLeadershipLost: the next leader may have the command in its log
		return http.StatusGatewayTimeout
	}
}
