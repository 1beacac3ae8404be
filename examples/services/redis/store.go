package main

import (
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/redcon"
)

// store has the values of all keys. Any goroutine may call its methods.
type store struct {
	mu     sync.Mutex
	values map[string][]byte
}

func newStore() *store { return &store{values: map[string][]byte{}} }

// commands are the implemented commands with their number of words. A client that asks for another one, such as HELLO,
// gets an error; go-redis then uses the protocol without it.
var commands = map[string]struct {
	words int
	run   func(*store, redcon.Conn, [][]byte)
}{
	"PING": {1, func(_ *store, c redcon.Conn, _ [][]byte) { c.WriteString("PONG") }},
	"SET":  {3, (*store).set},
	"GET":  {2, (*store).get},
	"DEL":  {2, (*store).del},
	"INCR": {2, (*store).incr},
}

// handle answers a command.
func (s *store) handle(c redcon.Conn, cmd redcon.Command) {
	name := strings.ToUpper(string(cmd.Args[0]))
	switch known, ok := commands[name]; {
	case !ok:
		c.WriteError("ERR unknown command '" + name + "'")
	case len(cmd.Args) != known.words:
		c.WriteError("ERR wrong number of arguments for '" + name + "' command")
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		known.run(s, c, cmd.Args[1:])
	}
}

func (s *store) set(c redcon.Conn, args [][]byte) {
	s.values[string(args[0])] = args[1]
	c.WriteString("OK")
}

func (s *store) get(c redcon.Conn, args [][]byte) {
	if v, ok := s.values[string(args[0])]; ok {
		c.WriteBulk(v)
	} else {
		c.WriteNull()
	}
}

func (s *store) del(c redcon.Conn, args [][]byte) {
	_, ok := s.values[string(args[0])]
	delete(s.values, string(args[0]))
	if ok {
		c.WriteInt(1)
	} else {
		c.WriteInt(0)
	}
}

func (s *store) incr(c redcon.Conn, args [][]byte) {
	key := string(args[0])
	var n int64
	if v, ok := s.values[key]; ok {
		var err error
		if n, err = strconv.ParseInt(string(v), 10, 64); err != nil {
			c.WriteError("ERR value is not an integer or out of range")
			return
		}
	}
	s.values[key] = strconv.AppendInt(nil, n+1, 10)
	c.WriteInt64(n + 1)
}
