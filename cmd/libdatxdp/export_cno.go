//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import "github.com/datxdp/datxdp/dat"

// agentOf returns a Go function that calls the program's wait proxy agent, which is a C function. It returns nil if the
// program has no wait proxy agent.
func agentOf(function, instance uint64) func(*dat.EVD) {
	if function == 0 {
		return nil
	}
	return func(evd *dat.EVD) {
		C.dx_call_agent(C.uint64_t(function), C.uint64_t(instance), C.uint64_t(handleOf(evd)))
	}
}

//export dxCreateCNO
func dxCreateCNO(ia, function, instance, handle uint64) (r uint32) {
	defer catchPanic(&r)
	cno, err := get[*dat.IA](ia).CreateCNO(agentOf(function, instance))
	return connectHandle(handle, cno, err)
}

//export dxModifyAgent
func dxModifyAgent(cno, function, instance uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.CNO](cno).ModifyAgent(agentOf(function, instance)))
}

// dxQueryCNO sets *agent to 1 if the CNO still has a wait proxy agent, and to 0 if not. The C part of this library has
// stored the function of the agent, so this call need not return it.
//
//export dxQueryCNO
func dxQueryCNO(cno uint64, agent *uint32) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.CNO](cno).Query()
	*agent = uint32(truth(p.Agent != nil))
	return returnCode(err)
}

//export dxFreeCNO
func dxFreeCNO(cno uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.CNO](cno).Free())
}

//export dxWaitCNO
func dxWaitCNO(cno uint64, timeout uint32, evd *uint64) (r uint32) {
	defer catchPanic(&r)
	e, err := get[*dat.CNO](cno).Wait(duration(timeout))
	*evd = handleOf(e)
	return returnCode(err)
}

//export dxTriggerCNO
func dxTriggerCNO(cno uint64, evd *uint64) (r uint32) {
	defer catchPanic(&r)
	e, err := get[*dat.CNO](cno).Trigger()
	*evd = handleOf(e)
	return returnCode(err)
}
