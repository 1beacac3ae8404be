package bpf

// The object is little-endian, for amd64 and arm64. It is committed, so that a build needs no clang.
//
//go:generate go tool bpf2go -target bpfel -tags linux -cflags "-O2 -g -Wall -Werror" -go-package bpf steer steer.c
//go:generate go tool bpf2go -target bpfel -tags linux -cflags "-O2 -g -Wall -Werror" -go-package bpf share share.c
//go:generate go tool bpf2go -target bpfel -tags linux -cflags "-O2 -g -Wall -Werror" -go-package bpf deliver deliver.c
//go:generate go tool bpf2go -target bpfel -tags linux -cflags "-O2 -g -Wall -Werror" -go-package bpf send send.c
