package bpf

// The object is little-endian, for amd64 and arm64. It is committed, so that a build needs no clang.
//
//go:generate go tool bpf2go -target bpfel -tags linux -cflags "-O2 -g -Wall -Werror" -go-package bpf steer steer.c
