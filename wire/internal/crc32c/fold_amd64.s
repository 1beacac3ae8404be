#include "textflag.h"

// FOLD moves acc on by k and adds data. tmp is lost.
#define FOLD(k, data, acc, tmp) \
	VPCLMULQDQ $0x00, k, acc, tmp  \
	VPCLMULQDQ $0x11, k, acc, acc  \
	VPTERNLOGQ $0x96, data, tmp, acc // a three-way exclusive or

// func foldBy(f *factors, crc uint32, b []byte) uint32
TEXT ·foldBy(SB), NOSPLIT, $0-44
	MOVQ f+0(FP), DI
	MOVL crc+8(FP), AX
	MOVQ b_base+16(FP), SI
	MOVQ b_len+24(FP), CX

	// The checksum so far is added to the first bytes.
	NOTL      AX
	VMOVD     AX, X4
	VMOVDQU64 (SI), Z0
	VPXORQ    Z4, Z0, Z0
	ADDQ      $64, SI
	SUBQ      $64, CX
	VBROADCASTI32X4 48(DI), Z10
	CMPQ      CX, $192
	JB        single

	// 256 bytes at a time, in four registers.
	VMOVDQU64 (SI), Z1
	VMOVDQU64 64(SI), Z2
	VMOVDQU64 128(SI), Z3
	ADDQ      $192, SI
	SUBQ      $192, CX
	CMPQ      CX, $256
	JB        join
	VBROADCASTI32X4 (DI), Z11

four:
	FOLD(Z11, (SI), Z0, Z4)
	FOLD(Z11, 64(SI), Z1, Z5)
	FOLD(Z11, 128(SI), Z2, Z6)
	FOLD(Z11, 192(SI), Z3, Z7)
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  four

join:
	VBROADCASTI32X4 16(DI), Z8
	VBROADCASTI32X4 32(DI), Z9
	FOLD(Z8, Z3, Z0, Z4)
	VPCLMULQDQ $0x00, Z9, Z1, Z5
	VPCLMULQDQ $0x11, Z9, Z1, Z1
	VPCLMULQDQ $0x00, Z10, Z2, Z6
	VPCLMULQDQ $0x11, Z10, Z2, Z2
	VPTERNLOGQ $0x96, Z5, Z1, Z0
	VPTERNLOGQ $0x96, Z6, Z2, Z0

single:
	CMPQ CX, $64
	JB   reduce

one:
	FOLD(Z10, (SI), Z0, Z4)
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE  one

reduce:
	// Four times 16 bytes to 16, and those to 4: their own checksum.
	VMOVDQU64      64(DI), Z8
	VPCLMULQDQ     $0x00, Z8, Z0, Z4
	VPCLMULQDQ     $0x11, Z8, Z0, Z5
	VEXTRACTI32X4  $3, Z0, X6
	VPXORQ         Z4, Z5, Z4
	VEXTRACTI64X4  $1, Z4, Y5
	VPXORQ         Y4, Y5, Y4
	VEXTRACTI128   $1, Y4, X5
	VPTERNLOGQ     $0x96, X5, X6, X4
	VMOVQ          X4, DX
	VPEXTRQ        $1, X4, BX
	VZEROUPPER
	XORL           AX, AX
	CRC32Q         DX, AX
	CRC32Q         BX, AX

	// The remaining bytes, fewer than 64.
	CMPQ CX, $8
	JB   bytes

words:
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	CMPQ   CX, $8
	JAE    words

bytes:
	TESTQ CX, CX
	JZ    done

byte:
	CRC32B (SI), AX
	INCQ   SI
	DECQ   CX
	JNZ    byte

done:
	NOTL AX
	MOVL AX, ret+40(FP)
	RET
