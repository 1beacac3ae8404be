package identity

import (
	"errors"
	"runtime"

	"golang.org/x/sys/cpu"
)

// ErrProcessor: the processor has no instructions for AES and carry-less multiplication. Without them AES-GCM is slow, and
// its time depends on the key.
var ErrProcessor = errors.New("this processor has no instructions for AES and carry-less multiplication, which secure mode needs; the option insecure selects plaintext mode")

// CheckProcessor returns ErrProcessor, or nil.
func CheckProcessor() error {
	has := false
	switch runtime.GOARCH {
	case "amd64":
		has = cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSSE3 && cpu.X86.HasSSE41
	case "arm64":
		has = cpu.ARM64.HasAES && cpu.ARM64.HasPMULL
	}
	if !has {
		return ErrProcessor
	}
	return nil
}
