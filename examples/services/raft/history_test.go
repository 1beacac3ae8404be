package main

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// history is what the clients of a load have done.
type history struct {
	t      *testing.T
	load   *labtest.Process
	events []event
	leader string // that has answered last
}

// await reads events until a number of commands has succeeded.
func (h *history) await(n int) {
	h.t.Helper()
	for n > 0 {
		if e := h.add(h.load.Line()); !e.Unknown {
			h.leader = e.Result.Node
			n--
		}
	}
}

func (h *history) add(line string) (e event) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		h.t.Fatalf("%q: %v", line, err)
	}
	h.events = append(h.events, e)
	return e
}

// output is the result of an operation in the model.
type output struct {
	result
	unknown bool
}

// register is the model of one key. The state is its value; absent is the empty string, which nobody writes.
var register = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range all {
			key := o.Input.(command).Key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range byKey {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(st, in, out any) (bool, any) {
		now, c, r := st.(string), in.(command), out.(output)
		s := store{values: map[string]string{}}
		if now != "" {
			s.values[c.Key] = now
		}
		want := s.run(c)
		legal := r.unknown || r.OK == want.OK && r.Value == want.Value
		return legal, s.values[c.Key]
	},
}

// check fails the test unless the history is linearizable. A command with an unknown end may take effect at any time
// after its call, so it does not return. If it never takes effect, that is the same as an effect after all others.
func (h *history) check() {
	h.t.Helper()
	var ops []porcupine.Operation
	unknown := 0
	for _, e := range h.events {
		if e.Unknown {
			unknown++
			if e.Command.Op == opGet {
				continue // it has no effect and no result
			}
			e.Return = math.MaxInt64
		}
		ops = append(ops, porcupine.Operation{ClientId: e.Client, Input: e.Command, Output: output{e.Result, e.Unknown}, Call: e.Call, Return: e.Return})
	}
	h.t.Logf("%d commands, %d of them with an unknown end", len(h.events), unknown)
	if got := porcupine.CheckOperationsTimeout(register, ops, time.Minute); got != porcupine.Ok {
		h.t.Errorf("the history is not linearizable: %s", got)
	}
}

// TestCheck: the model accepts what a store may do and nothing else.
func TestCheck(t *testing.T) {
	put, cas := command{Op: opPut, Key: "k", Value: "1"}, command{Op: opCAS, Key: "k", Old: "1", Value: "2"}
	get := command{Op: opGet, Key: "k"}
	ok := func(value string) output { return output{result: result{OK: true, Value: value}} }
	op := func(in command, out output, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: end}
	}
	lost := output{unknown: true}
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want bool
	}{
		"in order":              {[]porcupine.Operation{op(put, ok(""), 0, 1), op(cas, ok(""), 2, 3), op(get, ok("2"), 4, 5)}, true},
		"stale read":            {[]porcupine.Operation{op(put, ok(""), 0, 1), op(cas, ok(""), 2, 3), op(get, ok("1"), 4, 5)}, false},
		"lost write":            {[]porcupine.Operation{op(put, ok(""), 0, 1), op(get, output{}, 2, 3)}, false},
		"unknown took effect":   {[]porcupine.Operation{op(put, lost, 0, math.MaxInt64), op(get, output{}, 1, 2), op(get, ok("1"), 3, 4)}, true},
		"unknown had no effect": {[]porcupine.Operation{op(put, lost, 0, math.MaxInt64), op(get, output{}, 1, 2)}, true},
		"swapped twice":         {[]porcupine.Operation{op(put, ok(""), 0, 1), op(cas, ok(""), 2, 3), op(cas, ok(""), 4, 5)}, false},
	} {
		if got := porcupine.CheckOperations(register, c.ops); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, c.want)
		}
	}
}
