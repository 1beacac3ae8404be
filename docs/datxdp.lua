-- Wireshark dissector of the wire protocol, version 2; WIRE.md beside it is the reference. Of other versions
-- only Versions, whose layout they share, is dissected.
--
--   tshark -X lua_script:docs/datxdp.lua -r capture.pcapng
--   wireshark: copy it to the folder of personal Lua plugins (Help, About, Folders)
--   tshark -X lua_script:docs/datxdp.lua -o datxdp.keylog:FILE -r capture.pcapng
--
-- The preference datxdp.keylog names a key log (DATXDP_KEYLOG; WIRE.md, Key log). The capture must have the Connect of a
-- connection whose packets are to be opened.
--
-- UDP port 17473, and one more by the preference datxdp.port. It runs on Lua 5.1 to 5.4, so it uses no
-- integer operators. Nothing is read before its end was checked against what was captured.

local default_port = 17473
local version, header_size, trailer_size, seal_size = 2, 32, 4, 16
local max_sack, sack_word, hello_size, goodbye_size, probed_size = 128, 4, 52, 12, 4
local max_options, max_private, max_noise_data, max_variable, option_head = 256, 512, 640, 768, 2
local port_size, key_size, noise_fixed = 2, 32, 5
local DATA, ACK, CONNECT, ACCEPT, REJECT, CLOSE, CLOSED = 1, 2, 3, 4, 5, 6, 7
local RESET, CHALLENGE, PROBE, PROBED, VERSIONS = 8, 9, 10, 11, 12
local HAS_SACK, KEY_PHASE = 0x02, 0x04
local seals = { [DATA] = true, [ACK] = true, [PROBE] = true, [PROBED] = true, [CLOSE] = true, [CLOSED] = true }
local UDP_PORT, SERVER_KEY, NOISE, MANDATORY = 0x01, 0x02, 0x81, 0x80

local types = {
  [DATA] = "Data", [ACK] = "Ack", [CONNECT] = "Connect", [ACCEPT] = "Accept", [REJECT] = "Reject",
  [CLOSE] = "Close", [CLOSED] = "Closed", [RESET] = "Reset", [CHALLENGE] = "Challenge",
  [PROBE] = "Probe", [PROBED] = "Probed", [VERSIONS] = "Versions",
}

local reasons = {
  [0] = "ordinary disconnect",
  [1] = "Reject: by the consumer",
  [2] = "Reject: nobody listens",
  [3] = "Reject: backlog full",
  [4] = "Reject: no connection place left",
  [5] = "wrong remote key, range, right or zone",
  [6] = "message longer than its receive",
  [7] = "message found no receive",
  [8] = "packet violates the protocol",
  [9] = "peer silent, or not ready, for too long",
  [10] = "an operation of the closing side failed, or a mark of its shared queue was crossed",
  [11] = "registered memory of the closing side is inaccessible",
  [12] = "unfinished message held a receive of a shared queue for too long",
  [13] = "peer speaks other versions only",
  [14] = "Reject, or Close after Accept: unknown mandatory option",
  [15] = "the peer's kernel reports that its UDP port is closed",
  [16] = "Reject: secure mode required",
  [17] = "key limit reached",
  [18] = "message 1 unanswered",
  [19] = "the policy of the closing side does not permit the connection any more",
  [20] = "the peer process has ended, or has lost the connection in a restart",
  [21] = "the peer's host is unreachable",
  [22] = "no route to the peer's network",
  [23] = "packets to the peer are prohibited",
}

local options = { [UDP_PORT] = "UDP port", [SERVER_KEY] = "server key", [NOISE] = "Noise handshake" }
local forms, ciphers = { "IK", "NNpsk0" }, { [0] = "AES-128-GCM" }
local head_sizes = { -- of the Noise handshake, by type of packet and form
  [CONNECT] = { 80, 32 }, [ACCEPT] = { 32, 32 }, [REJECT] = { 32, 32 },
}

local op_names = {
  [0] = "none", "Ready", "Send", "Write", "ReadReq", "ReadResp", "SendInv",
  [7] = "WriteImm", [8] = "AtomicReq", [9] = "AtomicResp", [10] = "SendOnly",
}

local datxdp = Proto("datxdp", "datxdp, uDAPL over AF_XDP")
datxdp.prefs.port = Pref.uint("Another UDP port", 0, "Taken for datxdp beside 17473; 0: none")
datxdp.prefs.keylog = Pref.string("Key log", "", "File that DATXDP_KEYLOG has made; empty: none")
datxdp.prefs.check_crc = Pref.bool("Check CRC32C", true, "Compute the checksum of every packet")

-- Every field by its short name: fields.key is the filter datxdp.key.
local fields = {}
local function field(name, kind, title, ...)
  local key = name:gsub("%.", "_")
  fields[key] = ProtoField[kind]("datxdp." .. name, title, ...)
end

field("version", "uint8", "Version", base.DEC, nil, 0xf0)
field("type", "uint8", "Type", base.DEC, types, 0x0f)
field("flags", "uint8", "Flags", base.HEX)
field("flags.ack_request", "bool", "AckRequest", 8, nil, 0x01)
field("flags.has_sack", "bool", "HasSACK", 8, nil, HAS_SACK)
field("flags.key_phase", "bool", "KeyPhase", 8, nil, KEY_PHASE)
field("flags.epoch", "bool", "Epoch", 8, nil, 0x08)
field("flags.no_credit", "bool", "NoCredit", 8, nil, 0x10)
field("flags.epoch_seen", "bool", "EpochSeen", 8, nil, 0x20)
field("flags.not_ready", "bool", "NotReady", 8, nil, 0x40)
field("flags.source_port", "bool", "SourcePort", 8, nil, 0x80)
field("ce", "uint16", "CE marks", base.DEC)
field("cid", "uint32", "CID", base.HEX)
field("psn", "uint32", "PSN", base.DEC)
field("ack", "uint32", "Ack", base.DEC)
field("credit", "uint32", "Credit", base.DEC)
field("ts", "uint32", "TS (64 ns)", base.DEC)
field("echo", "uint32", "Echo (64 ns)", base.DEC)
field("tag", "uint32", "Verification tag", base.HEX)
field("counter", "uint32", "Counter (lower half)", base.DEC)
field("sack", "bytes", "SACK block")
field("sack.psn", "uint32", "Held", base.DEC)
field("chunk", "none", "Chunk")
field("chunk.op", "uint8", "Operation", base.DEC, op_names)
field("chunk.flags", "uint8", "Flags", base.HEX)
field("chunk.flags.last", "bool", "Last", 8, nil, 0x01)
field("chunk.flags.solicited", "bool", "Solicited", 8, nil, 0x02)
field("chunk.flags.compare", "bool", "Compare and swap", 8, nil, 0x04)
field("chunk.len", "uint16", "Payload length", base.DEC)
field("chunk.msn", "uint32", "Message number", base.DEC)
field("chunk.read", "uint32", "Read number", base.DEC)
field("chunk.offset", "uint32", "Offset", base.DEC)
field("chunk.key", "uint32", "Remote key", base.HEX)
field("chunk.addr", "uint64", "Remote address", base.HEX)
field("chunk.size", "uint32", "Length wanted", base.DEC)
field("chunk.imm", "uint32", "Immediate data", base.HEX)
field("chunk.value", "uint64", "Operand", base.HEX)
field("chunk.comparand", "uint64", "Comparand", base.HEX)
field("chunk.old", "uint64", "Old value", base.HEX)
field("chunk.payload", "bytes", "Payload")
field("hello", "none", "Hello")
field("hello.cid", "uint32", "CID", base.HEX)
field("hello.tag", "uint32", "Verification tag", base.HEX)
field("hello.mtu", "uint32", "MTU", base.DEC)
field("hello.window", "uint16", "Window (packets)", base.DEC)
field("hello.read_in", "uint16", "RDMA reads served", base.DEC)
field("hello.read_out", "uint16", "RDMA reads wanted", base.DEC)
field("hello.reason", "uint8", "Reason", base.DEC, reasons)
field("hello.reserved", "uint8", "Reserved", base.HEX)
field("hello.capabilities", "uint32", "Capabilities", base.HEX)
field("hello.qual", "uint64", "Connection qualifier", base.HEX)
field("hello.port", "uint64", "Port qualifier", base.HEX)
field("hello.cookie", "uint64", "Cookie", base.HEX)
field("hello.options_len", "uint16", "Options length", base.DEC)
field("hello.private_len", "uint16", "Private data length", base.DEC)
field("hello.option", "none", "Option")
field("hello.option.type", "uint8", "Type", base.DEC, options)
field("hello.option.mandatory", "bool", "Mandatory", 8, nil, MANDATORY)
field("hello.option.len", "uint8", "Length", base.DEC)
field("hello.option.udp_port", "uint16", "UDP port", base.DEC)
field("hello.option.server_key", "bytes", "Server key")
field("hello.option.form", "uint8", "Form", base.DEC, forms, 0x0f)
field("hello.option.cipher", "uint8", "Cipher", base.DEC, ciphers, 0xf0)
field("hello.option.key_id", "bytes", "Key ID")
field("hello.option.head", "bytes", "Head of the Noise message")
field("hello.option.value", "bytes", "Value")
field("hello.private", "bytes", "Private data")
field("goodbye", "none", "Goodbye")
field("goodbye.cid", "uint32", "CID", base.HEX)
field("goodbye.num", "uint32", "Operation", base.DEC)
field("goodbye.reason", "uint8", "Reason", base.DEC, reasons)
field("goodbye.op", "uint8", "Chunk operation", base.DEC, op_names)
field("goodbye.reserved", "uint16", "Reserved", base.HEX)
field("probe.padding", "bytes", "Padding")
field("probed.size", "uint32", "Probe that arrived", base.DEC)
field("versions", "uint8", "Version that is spoken", base.DEC)
field("body", "bytes", "Body")
field("sealed", "bytes", "Sealed body")
field("sealed.phase", "uint32", "Key phase", base.DEC)
field("sealed.counter", "uint64", "Counter", base.DEC)
field("seal", "bytes", "Seal")
field("crc", "uint32", "CRC32C", base.HEX)
datxdp.fields = fields

local experts = {
  crc_good = ProtoExpert.new("datxdp.crc.good", "CRC32C is right", expert.group.CHECKSUM, expert.severity.CHAT),
  crc_bad = ProtoExpert.new("datxdp.crc.bad", "CRC32C is wrong", expert.group.CHECKSUM, expert.severity.ERROR),
  unopened = ProtoExpert.new("datxdp.unopened", "Does not open", expert.group.DECRYPTION, expert.severity.WARN),
  malformed = ProtoExpert.new("datxdp.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
  cut = ProtoExpert.new("datxdp.cut", "Not captured to the end", expert.group.UNDECODED, expert.severity.NOTE),
  ended = ProtoExpert.new("datxdp.ended", "Refused or broken", expert.group.RESPONSE_CODE, expert.severity.WARN),
}
datxdp.experts = experts

-- Layouts: field, offset, size, and the bits of it that are fields of their own.
local header_bits = {
  fields.flags_ack_request, fields.flags_has_sack, fields.flags_key_phase, fields.flags_epoch, fields.flags_no_credit,
  fields.flags_epoch_seen, fields.flags_not_ready, fields.flags_source_port,
}
local header_layout = { -- and the tag or the counter
  { fields.version, 0, 1 }, { fields.type, 0, 1 }, { fields.flags, 1, 1, bits = header_bits }, { fields.ce, 2, 2 },
  { fields.cid, 4, 4 }, { fields.psn, 8, 4 }, { fields.ack, 12, 4 }, { fields.credit, 16, 4 },
  { fields.ts, 20, 4 }, { fields.echo, 24, 4 },
}
local tag_layout, counter_layout = { { fields.tag, 28, 4 } }, { { fields.counter, 28, 4 } }
local hello_layout = {
  { fields.hello_cid, 0, 4 }, { fields.hello_tag, 4, 4 }, { fields.hello_mtu, 8, 4 }, { fields.hello_window, 12, 2 },
  { fields.hello_read_in, 14, 2 }, { fields.hello_read_out, 16, 2 }, { fields.hello_reason, 18, 1 },
  { fields.hello_reserved, 19, 1 }, { fields.hello_capabilities, 20, 4 }, { fields.hello_qual, 24, 8 },
  { fields.hello_port, 32, 8 }, { fields.hello_cookie, 40, 8 }, { fields.hello_options_len, 48, 2 },
  { fields.hello_private_len, 50, 2 },
}
local option_layout = {
  { fields.hello_option_type, 0, 1, bits = { fields.hello_option_mandatory } }, { fields.hello_option_len, 1, 1 },
}
local noise_layout = {
  { fields.hello_option_form, 0, 1 }, { fields.hello_option_cipher, 0, 1 }, { fields.hello_option_key_id, 1, 4 },
}
local goodbye_layout = {
  { fields.goodbye_cid, 0, 4 }, { fields.goodbye_num, 4, 4 }, { fields.goodbye_reason, 8, 1 },
  { fields.goodbye_op, 9, 1 }, { fields.goodbye_reserved, 10, 2 },
}
local chunk_common = {
  { fields.chunk_op, 0, 1 },
  { fields.chunk_flags, 1, 1, bits = { fields.chunk_flags_last, fields.chunk_flags_solicited, fields.chunk_flags_compare } },
  { fields.chunk_len, 2, 2 },
}
local chunk_layouts = { -- after the common part, by operation; bare: no payload
  { size = 4, bare = true },
  { size = 12, { fields.chunk_msn, 4, 4 }, { fields.chunk_offset, 8, 4 } },
  { size = 16, { fields.chunk_key, 4, 4 }, { fields.chunk_addr, 8, 8 } },
  { size = 24, bare = true, { fields.chunk_key, 4, 4 }, { fields.chunk_addr, 8, 8 }, { fields.chunk_size, 16, 4 },
    { fields.chunk_read, 20, 4 } },
  { size = 12, { fields.chunk_read, 4, 4 }, { fields.chunk_offset, 8, 4 } },
  { size = 16, { fields.chunk_msn, 4, 4 }, { fields.chunk_offset, 8, 4 }, { fields.chunk_key, 12, 4 } },
  [7] = { size = 28, { fields.chunk_key, 4, 4 }, { fields.chunk_addr, 8, 8 }, { fields.chunk_msn, 16, 4 },
    { fields.chunk_offset, 20, 4 }, { fields.chunk_imm, 24, 4 } },
  [8] = { size = 36, bare = true, { fields.chunk_key, 4, 4 }, { fields.chunk_addr, 8, 8 }, { fields.chunk_read, 16, 4 },
    { fields.chunk_value, 20, 8 }, { fields.chunk_comparand, 28, 8 } },
  [9] = { size = 16, bare = true, { fields.chunk_read, 4, 4 }, { fields.chunk_old, 8, 8 } },
  [10] = { size = 4 },
}

-- CRC32C (Castagnoli), reflected. The bit library gives signed numbers.
local bxor, band, rshift = bit.bxor, bit.band, bit.rshift
local crc_table = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do
    if band(c, 1) == 1 then c = bxor(rshift(c, 1), 0x82f63b78) else c = rshift(c, 1) end
  end
  crc_table[i] = c
end

local function crc32c(s)
  local c = 0xffffffff
  for i = 1, #s do
    c = bxor(crc_table[band(bxor(c, s:byte(i)), 0xff)], rshift(c, 8))
  end
  return bxor(c, 0xffffffff) % 4294967296
end

-- AES-128-GCM and HKDF-Expand with SHA-256, since Lua of Wireshark 4.0 has no cryptography. Strings are bytes; words are
-- numbers of 32 bits, which the bit library makes signed.
local bor, lshift, rol, ror, tobit = bit.bor, bit.lshift, bit.rol, bit.ror, bit.tobit
local unpack = table.unpack or unpack

local function word(s, i)
  local a, b, c, d = s:byte(i, i + 3)
  return bor(lshift(a, 24), lshift(b, 16), lshift(c, 8), d)
end

local function unword(w)
  return string.char(rshift(w, 24), band(rshift(w, 16), 255), band(rshift(w, 8), 255), band(w, 255))
end

-- sha_k and sha_start are the first bits behind the point of the cube and square roots of the first primes.
local sha_k, sha_start = {}, {}
do
  local n = 2
  while #sha_k < 64 do
    local prime = true
    for i = 2, math.floor(n ^ 0.5) do prime = prime and n % i ~= 0 end
    if prime then
      sha_k[#sha_k + 1] = tobit(math.floor(n ^ (1 / 3) % 1 * 4294967296))
      if #sha_start < 8 then sha_start[#sha_start + 1] = tobit(math.floor(n ^ 0.5 % 1 * 4294967296)) end
    end
    n = n + 1
  end
end

local function sha_block(state, s, at)
  local w = {}
  for i = 1, 16 do w[i] = word(s, at + 4 * i - 4) end
  for i = 17, 64 do
    local x, y = w[i - 15], w[i - 2]
    w[i] = tobit(w[i - 16] + bxor(ror(x, 7), ror(x, 18), rshift(x, 3)) + w[i - 7] + bxor(ror(y, 17), ror(y, 19), rshift(y, 10)))
  end
  local a, b, c, d, e, f, g, h = unpack(state)
  for i = 1, 64 do
    local t = h + bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + bxor(g, band(e, bxor(f, g))) + sha_k[i] + w[i]
    local u = bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + bor(band(a, b), band(c, bor(a, b)))
    h, g, f, e, d, c, b, a = g, f, e, tobit(d + t), c, b, a, tobit(t + u)
  end
  for i, x in ipairs({ a, b, c, d, e, f, g, h }) do state[i] = tobit(state[i] + x) end
end

local function sha256(s)
  local padded = s .. "\128" .. ("\0"):rep((55 - #s) % 64) .. ("\0"):rep(4) .. unword(8 * #s)
  local state = { unpack(sha_start) }
  for at = 1, #padded, 64 do sha_block(state, padded, at) end
  for i = 1, 8 do state[i] = unword(state[i]) end
  return table.concat(state)
end

-- expand is HKDF-Expand of at most 32 bytes with a secret of 32 bytes: an HMAC.
local function expand(secret, label, n)
  local inner, outer = {}, {}
  for i = 1, 64 do
    local b = secret:byte(i) or 0
    inner[i], outer[i] = string.char(bxor(b, 0x36)), string.char(bxor(b, 0x5c))
  end
  return sha256(table.concat(outer) .. sha256(table.concat(inner) .. label .. "\1")):sub(1, n)
end

-- Tables of AES: the S-box, and S-box and MixColumns of one byte for each place in a word.
local sbox, mix = {}, { {}, {}, {}, {} }
do
  local power, log, x = {}, {}, 1
  for i = 0, 254 do
    power[i], log[x] = x, i
    x = bxor(x, x < 128 and 2 * x or bxor(2 * x, 0x11b)) -- times 3
  end
  for i = 0, 255 do
    local b = i > 0 and power[(255 - log[i]) % 255] or 0
    local s = 0x63
    for k = 0, 4 do s = bxor(s, band(bor(lshift(b, k), rshift(b, 8 - k)), 255)) end
    sbox[i] = s
    local twice = s < 128 and 2 * s or bxor(2 * s, 0x11b)
    local w = bor(lshift(twice, 24), lshift(s, 16), lshift(s, 8), bxor(twice, s))
    for k = 1, 4 do mix[k][i] = ror(w, 8 * k - 8) end
  end
end

local function substitute(a, b, c, d)
  return bor(lshift(sbox[rshift(a, 24)], 24), lshift(sbox[band(rshift(b, 16), 255)], 16),
    lshift(sbox[band(rshift(c, 8), 255)], 8), sbox[band(d, 255)])
end

-- aes_schedule returns the round keys of a key of 16 bytes.
local function aes_schedule(key)
  local w, constant = {}, 1
  for i = 1, 4 do w[i] = word(key, 4 * i - 3) end
  for i = 5, 44 do
    local x = w[i - 1]
    if i % 4 == 1 then
      x = rol(x, 8)
      x = bxor(substitute(x, x, x, x), lshift(constant, 24))
      constant = constant < 128 and 2 * constant or bxor(2 * constant, 0x11b)
    end
    w[i] = bxor(w[i - 4], x)
  end
  return w
end

-- aes encrypts a block of four words.
local function aes(w, a, b, c, d)
  local m1, m2, m3, m4 = mix[1], mix[2], mix[3], mix[4]
  a, b, c, d = bxor(a, w[1]), bxor(b, w[2]), bxor(c, w[3]), bxor(d, w[4])
  for i = 5, 37, 4 do
    a, b, c, d =
      bxor(m1[rshift(a, 24)], m2[band(rshift(b, 16), 255)], m3[band(rshift(c, 8), 255)], m4[band(d, 255)], w[i]),
      bxor(m1[rshift(b, 24)], m2[band(rshift(c, 16), 255)], m3[band(rshift(d, 8), 255)], m4[band(a, 255)], w[i + 1]),
      bxor(m1[rshift(c, 24)], m2[band(rshift(d, 16), 255)], m3[band(rshift(a, 8), 255)], m4[band(b, 255)], w[i + 2]),
      bxor(m1[rshift(d, 24)], m2[band(rshift(a, 16), 255)], m3[band(rshift(b, 8), 255)], m4[band(c, 255)], w[i + 3])
  end
  return bxor(substitute(a, b, c, d), w[41]), bxor(substitute(b, c, d, a), w[42]),
    bxor(substitute(c, d, a, b), w[43]), bxor(substitute(d, a, b, c), w[44])
end

-- shift_right moves four words right by n bits, without reduction.
local function shift_right(n, a, b, c, d)
  local m = 32 - n
  return rshift(a, n), bor(rshift(b, n), lshift(a, m)), bor(rshift(c, n), lshift(b, m)), bor(rshift(d, n), lshift(c, m))
end

-- ghash_table returns the products of 0 to 15 and the key of GHASH, for multiplication by four bits at a time. In GHASH
-- the first bit of a byte is the lowest power of x, and the polynomial is x^128 + x^7 + x^2 + x + 1.
local function ghash_table(a, b, c, d)
  local m = { [0] = { 0, 0, 0, 0 }, [8] = { a, b, c, d } }
  for _, i in ipairs({ 4, 2, 1 }) do
    local carry = band(d, 1)
    a, b, c, d = shift_right(1, a, b, c, d)
    if carry == 1 then a = bxor(a, 0xe1000000) end
    m[i] = { a, b, c, d }
  end
  for _, i in ipairs({ 2, 4, 8 }) do
    for j = 1, i - 1 do
      local x, y = m[i], m[j]
      m[i + j] = { bxor(x[1], y[1]), bxor(x[2], y[2]), bxor(x[3], y[3]), bxor(x[4], y[4]) }
    end
  end
  return m
end

-- ghash_rest is what four bits that are shifted out come back as.
local ghash_rest = { [0] = 0, 0x1c20, 0x3840, 0x2460, 0x7080, 0x6ca0, 0x48c0, 0x54e0, 0xe100, 0xfd20, 0xd940, 0xc560,
  0x9180, 0x8da0, 0xa9c0, 0xb5e0 }
for i = 0, 15 do ghash_rest[i] = lshift(ghash_rest[i], 16) end

-- ghash_block returns the product of a block and the key of GHASH.
local function ghash_block(m, x)
  local a, b, c, d = 0, 0, 0, 0
  for i = 4, 1, -1 do
    for bits = 0, 28, 4 do
      local rest = ghash_rest[band(d, 15)]
      a, b, c, d = shift_right(4, a, b, c, d)
      local y = m[band(rshift(x[i], bits), 15)]
      a, b, c, d = bxor(a, rest, y[1]), bxor(b, y[2]), bxor(c, y[3]), bxor(d, y[4])
    end
  end
  x[1], x[2], x[3], x[4] = a, b, c, d
end

-- ghash returns the hash of associated data and ciphertext as four words.
local function ghash(m, header, body)
  local x = { 0, 0, 0, 0 }
  for _, s in ipairs({ header, body }) do
    s = s .. ("\0"):rep(-#s % 16)
    for at = 1, #s, 16 do
      for i = 1, 4 do x[i] = bxor(x[i], word(s, at + 4 * i - 4)) end
      ghash_block(m, x)
    end
  end
  x[2], x[4] = bxor(x[2], 8 * #header), bxor(x[4], 8 * #body)
  ghash_block(m, x)
  return x
end

-- gcm_open returns the plaintext of a body, or nil if the tag is wrong.
local function gcm_open(key, counter, header, body, tag)
  local high, low = math.floor(counter / 4294967296), counter % 4294967296
  local a, b, c, d = aes(key.schedule, key.salt, high, low, 1)
  local x = ghash(key.products, header, body)
  if unword(bxor(x[1], a)) .. unword(bxor(x[2], b)) .. unword(bxor(x[3], c)) .. unword(bxor(x[4], d)) ~= tag then return end
  local padded, out = body .. ("\0"):rep(-#body % 16), {}
  for at = 1, #padded, 16 do
    a, b, c, d = aes(key.schedule, key.salt, high, low, 2 + (at - 1) / 16)
    out[#out + 1] = unword(bxor(word(padded, at), a)) .. unword(bxor(word(padded, at + 4), b)) ..
      unword(bxor(word(padded, at + 8), c)) .. unword(bxor(word(padded, at + 12), d))
  end
  return table.concat(out):sub(1, #body)
end

-- derive returns the key of a phase and the secret of the next phase.
local function derive(secret)
  local schedule = aes_schedule(expand(secret, "datxdp key", 16))
  local key = { schedule = schedule, salt = word(expand(secret, "datxdp salt", 4), 1),
    products = ghash_table(aes(schedule, 0, 0, 0, 0)) }
  return key, expand(secret, "datxdp next", 32)
end

-- A direction of a secure connection: the key of its phase, of the phase before and, once seen, of the phase after it;
-- the counter that is expected next, and the counter of the first packet in the phase.
local function new_direction(secret)
  local d = { phase = 0, first = 0, expected = 0 }
  d.key, d.secret = derive(secret)
  return d
end

-- nearest is the counter nearest to the expected one that has these lower 32 bits.
local function nearest(expected, low)
  local c = expected - expected % 4294967296 + low
  if c > expected + 2147483648 and c >= 4294967296 then return c - 4294967296 end
  if c + 2147483648 < expected then return c + 4294967296 end
  return c
end

-- open_in opens a packet of a direction. It returns the body, the phase and the counter, or nil.
local function open_in(d, bit_of_phase, low, header, body, tag)
  local counter = nearest(d.expected, low)
  local key, phase = d.key, d.phase
  if bit_of_phase ~= d.phase % 2 then
    key, phase = d.before, d.phase - 1
    if counter >= d.first then
      if not d.after then d.after, d.next_secret = derive(d.secret) end
      key, phase = d.after, d.phase + 1
    end
  end
  local opened = key and gcm_open(key, counter, header, body, tag)
  if not opened then return end
  d.expected = math.max(d.expected, counter + 1)
  if phase > d.phase then
    d.before, d.key, d.after, d.secret = d.key, d.after, nil, d.next_secret
    d.phase, d.first = phase, counter
  end
  return opened, phase, counter
end

-- Secure connections, by a Connect with the Noise handshake. Packets to the requester have its CID. Packets to the
-- server have a CID that is in no clear packet, so they are known by addresses and ports. A Connect without the
-- Noise handshake, of the same names, ends that. Wireshark dissects packets in order first, and later at random:
-- sealed_frames keeps the result.
local secure, sealed_frames = {}, {}

local function to_server(pinfo)
  return table.concat({ tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port }, " ")
end

local function to_requester(address, cid) return tostring(address) .. " cid " .. cid end

-- The key log: pairs of secrets by the CID and the tag of the requester. It is read again when it has grown, since it is
-- written while a capture runs.
local log = { name = "", at = 0, pairs = {} }

local function unhex(s)
  return (s:gsub("%x%x", function(x) return string.char(tonumber(x, 16)) end))
end

local function read_line(line)
  local kind, cid, tag, server, secret = line:match("^DATXDP2_(%u+) (%x+) (%x+) (%x+) (%x+)%s*$")
  if not secret or #secret ~= 64 then return end
  local name = cid:lower() .. " " .. tag:lower()
  local found = log.pairs[name] or {}
  found[kind], found.server = secret, tonumber(server, 16)
  log.pairs[name] = found
end

-- open_log opens the key log at the place up to which it was read, if there is more. A pipe or a device is not read: seek
-- fails, or returns 0. A pipe without a writer would block Wireshark if it were opened for reading alone, so the log is
-- opened for writing too, unless this user may only read it.
local function open_log(name)
  local file = io.open(name, "r+b") or io.open(name, "rb")
  local size = file and file:seek("end")
  if size and size > log.at then
    file:seek("set", log.at)
    return file
  end
  if file then file:close() end
end

-- read_log returns whether there was something new in the key log.
local function read_log()
  local name = datxdp.prefs.keylog
  if name ~= log.name then log = { name = name, at = 0, pairs = {} } end
  local file = name ~= "" and open_log(name)
  if not file then return false end
  local text = (file:read("*a") or ""):match("^.*\n") or ""
  file:close()
  log.at = log.at + #text
  for line in text:gmatch("[^\n]+") do read_line(line) end
  return text ~= ""
end

-- Connections: by address and CID of the requester, by addresses and CID of the server, and those without keys yet.
-- opened_frames keeps what was opened, because a key opens packets in order only.
local requesters, servers, keyless, fresh, opened_frames = {}, {}, {}, false, {}

function datxdp.init()
  secure, sealed_frames = {}, {}
  log = { name = "", at = 0, pairs = {} }
  requesters, servers, keyless, fresh, opened_frames = {}, {}, {}, false, {}
end

local function from_to(from, to, cid) return tostring(from) .. " " .. to_requester(to, cid) end

-- find_keys gives keys to the connections whose lines are in the key log.
local function find_keys()
  if not read_log() and not fresh then return end
  local rest = {}
  for _, c in ipairs(keyless) do
    local found = log.pairs[c.name]
    if found and found.REQUESTER and found.SERVER then
      c.up, c.down = new_direction(unhex(found.REQUESTER)), new_direction(unhex(found.SERVER))
      servers[from_to(c.src, c.dst, found.server)] = c
    else
      rest[#rest + 1] = c
    end
  end
  keyless, fresh = rest, false
end

-- note_connect keeps whether a Connect with a cookie asks for a secure connection.
local function note_connect(p, cid, tag)
  local pinfo = p.pinfo
  if pinfo.visited then return end
  secure[to_server(pinfo)] = p.noise
  secure[to_requester(pinfo.src, cid)] = p.noise
  local name, place = string.format("%08x %08x", cid, tag), to_requester(pinfo.src, cid)
  local known = requesters[place]
  if not p.noise then
    requesters[place] = nil
  elseif not known or known.name ~= name then
    local c = { name = name, src = tostring(pinfo.src), dst = tostring(pinfo.dst) }
    requesters[place], keyless[#keyless + 1], fresh = c, c, true
  end
end

-- direction_of returns the direction of a connection that a packet belongs to, or nil without its keys.
local function direction_of(pinfo, cid)
  if #keyless > 0 then find_keys() end
  local c = requesters[to_requester(pinfo.dst, cid)]
  if c and c.dst == tostring(pinfo.src) then return c.down end
  c = servers[from_to(pinfo.src, pinfo.dst, cid)]
  return c and c.up
end

-- open_sealed opens a sealed packet. It returns nil if there is no key, and a table without a body if it does not open.
local function open_sealed(p)
  local pinfo, tvb = p.pinfo, p.tvb
  if pinfo.visited then return opened_frames[pinfo.number] end
  local d = p.have >= p.stop + seal_size and direction_of(pinfo, tvb(4, 4):uint())
  if not d then return end
  local o = {}
  o.body, o.phase, o.counter = open_in(d, band(p.flags, KEY_PHASE) / KEY_PHASE, tvb(28, 4):uint(), tvb:raw(0, header_size),
    p.stop > header_size and tvb:raw(header_size, p.stop - header_size) or "", tvb:raw(p.stop, seal_size))
  opened_frames[pinfo.number] = o
  return o
end

-- is_sealed says whether a packet is sealed. A Closed without a seal has a CRC.
local function is_sealed(p, total)
  local pinfo = p.pinfo
  if not pinfo.visited and seals[p.type] and p.have >= header_size and (p.type ~= CLOSED or total >= header_size + seal_size) then
    sealed_frames[pinfo.number] = secure[to_server(pinfo)] or secure[to_requester(pinfo.dst, p.tvb(4, 4):uint())]
  end
  return sealed_frames[pinfo.number]
end

-- A packet in hand: tvb, tree (ours), have (bytes captured), stop (where the trailer begins), pinfo, notes
-- (for the Info column).
local function malformed(p, tree, what)
  tree:add_proto_expert_info(experts.malformed, "Malformed: " .. what)
  p.notes[#p.notes + 1] = "[malformed: " .. what .. "]"
end

-- captured says whether the bytes up to last were; if not it leaves a note, once.
local function captured(p, last)
  if last <= p.have then return true end
  if not p.cut then
    p.cut = true
    p.tree:add_proto_expert_info(experts.cut)
    p.notes[#p.notes + 1] = "[cut]"
  end
  return false
end

-- fill adds fields of a layout, with the bits of flags below them, at offset at as far as they were
-- captured.
local function fill(p, tree, layout, at)
  for _, f in ipairs(layout) do
    if not captured(p, at + f[2] + f[3]) then return false end
    local range = p.tvb(at + f[2], f[3])
    local item = tree:add(f[1], range)
    for _, bit_field in ipairs(f.bits or {}) do item:add(bit_field, range) end
  end
  return true
end

-- bytes adds a field of n bytes at offset at, or as many of them as were captured.
local function bytes(p, tree, f, at, n)
  captured(p, at + n)
  n = math.min(n, p.have - at)
  if n > 0 then tree:add(f, p.tvb(at, n)) end
end

-- span is the range from offset at of at most n bytes that were captured.
local function span(p, at, n)
  return p.tvb(at, math.max(0, math.min(n, p.have - at)))
end

local function hex(n) return string.format("0x%08x", n) end

-- count adds an operation to the Info column.
local function count(p, name)
  local last = p.names[#p.names]
  if last and last.name == name then
    last.times = last.times + 1
  else
    p.names[#p.names + 1] = { name = name, times = 1 }
  end
end

-- without_sack says whether the packet claims no SACK block, which only Ack may have.
local function without_sack(p)
  if band(p.flags, HAS_SACK) == 0 then return true end
  malformed(p, p.tree, "HasSACK on " .. types[p.type])
  return false
end

local function add_chunk(p, at)
  local tvb, op = p.tvb, p.tvb(at, 1):uint()
  local layout = chunk_layouts[op]
  if not layout then return malformed(p, p.tree, "unknown chunk operation " .. op) end
  if at + layout.size > p.stop then return malformed(p, p.tree, "chunk header beyond the body") end
  if not captured(p, at + layout.size) then return end

  local n = tvb(at + 2, 2):uint()
  local node = p.tree:add(fields.chunk, span(p, at, math.min(layout.size + n, p.stop - at)))
  fill(p, node, chunk_common, at)
  fill(p, node, layout, at)
  node:set_text(op_names[op] .. ", " .. n .. " bytes" .. (band(tvb(at + 1, 1):uint(), 1) == 1 and ", last" or ""))
  count(p, op_names[op]:upper())
  if at + layout.size + n > p.stop then return malformed(p, node, "payload beyond the body") end
  if layout.bare and n > 0 then return malformed(p, node, op_names[op] .. " with a payload") end
  if n > 0 then bytes(p, node, fields.chunk_payload, at + layout.size, n) end
  p.payload = p.payload + n
  return at + layout.size + n
end

local function add_chunks(p)
  p.payload = 0
  if not without_sack(p) then return end
  local at = header_size
  while at and at < p.stop and captured(p, at + 1) do at = add_chunk(p, at) end
  p.notes[#p.notes + 1] = "len=" .. p.payload
end

local function add_sack(p)
  local size = p.stop - header_size
  if size == 0 or size > max_sack or size % sack_word ~= 0 then
    return malformed(p, p.tree, "SACK block of " .. size .. " bytes")
  end
  local node = p.tree:add(fields.sack, span(p, header_size, size))
  local held = 0
  for i = 0, size * 8 - 1 do
    local at = header_size + math.floor(i / 8)
    if not captured(p, at + 1) then break end
    if band(rshift(p.tvb(at, 1):uint(), i % 8), 1) == 1 then
      held = held + 1
      node:add(fields.sack_psn, p.tvb(at, 1), (p.ack + 1 + i) % 4294967296)
    end
  end
  p.notes[#p.notes + 1] = "sack=" .. held
end

local function add_reason(p, tree, reason)
  p.notes[#p.notes + 1] = "(" .. (reasons[reason] or "reason " .. reason) .. ")"
  if reason ~= 0 then tree:add_proto_expert_info(experts.ended, reasons[reason] or "Reason " .. reason) end
end

-- The functions below add the value of an option, which has n bytes at offset at. They return what is wrong
-- with it.
local function add_udp_port(p, node, at, n)
  if n ~= port_size then
    bytes(p, node, fields.hello_option_value, at, n)
    return "UDP port of " .. n .. " bytes"
  end
  if not captured(p, at + n) then return end
  local port = p.tvb(at, n)
  node:add(fields.hello_option_udp_port, port)
  if port:uint() == 0 then return "UDP port 0" end
  if p.udp_port then return "two UDP ports" end
  p.udp_port = port:uint()
  p.notes[#p.notes + 1] = "udp_port=" .. p.udp_port
end

local function add_server_key(p, node, at, n)
  if n ~= key_size then
    bytes(p, node, fields.hello_option_value, at, n)
    return "server key of " .. n .. " bytes"
  end
  bytes(p, node, fields.hello_option_server_key, at, n)
  if p.server_key then return "two server keys" end
  p.server_key = true
end

local function add_noise(p, node, at, n)
  if n < noise_fixed then
    bytes(p, node, fields.hello_option_value, at, n)
    return "Noise handshake of " .. n .. " bytes"
  end
  if not fill(p, node, noise_layout, at) then return end
  local first = p.tvb(at, 1):uint()
  local form, size = first % 16, (head_sizes[p.type] or {})[first % 16]
  bytes(p, node, fields.hello_option_head, at + noise_fixed, n - noise_fixed)
  p.notes[#p.notes + 1] = "form=" .. (forms[form] or form) .. " key=" .. p.tvb(at + 1, 4):bytes():tohex(true)
  if not forms[form] then return "unknown form " .. form end
  if first >= 16 then return "unknown cipher " .. (first - form) / 16 end
  if n - noise_fixed ~= size then return "Noise handshake of " .. n .. " bytes" end
  if p.noise then return "two Noise handshakes" end
  p.noise = true
end

local values = { [UDP_PORT] = add_udp_port, [SERVER_KEY] = add_server_key, [NOISE] = add_noise }

-- add_option adds the option at offset at, before offset stop. It returns the offset after it and what is
-- wrong with it, or nothing when the capture ends.
local function add_option(p, tree, at, stop)
  if at + option_head > stop then return stop, "option beyond the options" end
  if not captured(p, at + option_head) then
    fill(p, tree, option_layout, at)
    return
  end
  local kind, n = p.tvb(at, 1):uint(), p.tvb(at + 1, 1):uint()
  local rest = at + option_head
  local node = tree:add(fields.hello_option, span(p, at, math.min(option_head + n, stop - at)))
  fill(p, node, option_layout, at)
  node:set_text("Option: " .. (options[kind] or kind))
  if rest + n > stop then return stop, "option beyond the options" end
  if values[kind] then return rest + n, values[kind](p, node, rest, n) end
  bytes(p, node, fields.hello_option_value, rest, n)
  return rest + n
end

-- add_options adds the options in n bytes at offset at and returns what is wrong with the first bad one.
local function add_options(p, tree, at, n)
  local stop, wrong = at + n, nil
  while at and at < stop and not wrong do at, wrong = add_option(p, tree, at, stop) end
  return wrong
end

local function add_hello(p)
  local size, at = p.stop - header_size, header_size
  if size < hello_size then return malformed(p, p.tree, "Hello is too short") end
  local node = p.tree:add(fields.hello, span(p, at, size))
  if not fill(p, node, hello_layout, at) then return end
  local n, m = p.tvb(at + 48, 2):uint(), p.tvb(at + 50, 2):uint()
  local wrong
  p.notes[#p.notes + 1] = "from=" .. hex(p.tvb(at, 4):uint())
  if p.type == CONNECT then p.notes[#p.notes + 1] = "qual=0x" .. p.tvb(at + 24, 8):uint64():tohex() end
  if n + m ~= size - hello_size or n > max_options or m > max_noise_data or n + m > max_variable then
    wrong = "wrong length of options or private data"
  else
    wrong = add_options(p, node, at + hello_size, n)
    if m > 0 then bytes(p, node, fields.hello_private, at + hello_size + n, m) end
    if m > max_private and not p.noise and not p.cut then wrong = wrong or "too much private data" end
  end
  if p.type == REJECT then add_reason(p, node, p.tvb(at + 18, 1):uint()) end
  local cookie = p.tvb(at + 40, 8):uint64() ~= UInt64(0)
  if p.type == CONNECT and cookie and not wrong and not p.cut then note_connect(p, p.tvb(at, 4):uint(), p.tvb(at + 4, 4):uint()) end
  if wrong then malformed(p, node, wrong) end
end

local function add_goodbye(p)
  if p.stop - header_size ~= goodbye_size then return malformed(p, p.tree, "Goodbye of another size") end
  local node = p.tree:add(fields.goodbye, span(p, header_size, goodbye_size))
  if not fill(p, node, goodbye_layout, header_size) then return end
  p.notes[#p.notes + 1] = "from=" .. hex(p.tvb(header_size, 4):uint())
  add_reason(p, node, p.tvb(header_size + 8, 1):uint())
end

local function add_empty(p)
  local size = p.stop - header_size
  if size == 0 then return end
  bytes(p, p.tree, fields.body, header_size, size)
  malformed(p, p.tree, "body of a packet that has none")
end

local function add_probe(p)
  if not without_sack(p) then return end
  bytes(p, p.tree, fields.probe_padding, header_size, p.stop - header_size)
  p.notes[#p.notes + 1] = "size=" .. p.stop + p.trailer
end

local function add_probed(p)
  if not without_sack(p) then return end
  if p.stop - header_size ~= probed_size then return malformed(p, p.tree, "Probed of another size") end
  if not captured(p, p.stop) then return end
  local range = p.tvb(header_size, probed_size)
  p.tree:add(fields.probed_size, range)
  p.notes[#p.notes + 1] = "size=" .. range:uint()
end

-- add_versions shows a list of versions, a byte each.
local function add_versions(p)
  local list = {}
  for at = header_size, p.stop - 1 do
    if not captured(p, at + 1) then break end
    p.tree:add(fields.versions, p.tvb(at, 1))
    list[#list + 1] = p.tvb(at, 1):uint()
  end
  p.notes[#p.notes + 1] = "spoken=" .. table.concat(list, ",")
end

local function add_ack(p)
  if band(p.flags, HAS_SACK) ~= 0 then add_sack(p) else add_empty(p) end
end

local bodies = {
  [DATA] = add_chunks, [ACK] = add_ack, [CONNECT] = add_hello, [ACCEPT] = add_hello, [REJECT] = add_hello,
  [CHALLENGE] = add_hello, [CLOSE] = add_goodbye, [CLOSED] = add_empty, [RESET] = add_empty,
  [PROBE] = add_probe, [PROBED] = add_probed, [VERSIONS] = add_versions,
}

-- add_opened shows the body of a packet that was opened.
local function add_opened(p, o)
  p.tree:add(fields.sealed_phase, p.tvb(1, 1), o.phase):set_generated()
  p.tree:add(fields.sealed_counter, p.tvb(28, 4), UInt64.new(o.counter % 4294967296, math.floor(o.counter / 4294967296))):set_generated()
  p.tvb = ByteArray.new(p.tvb:raw(0, header_size) .. o.body, true):tvb("Opened datxdp")
  p.have, p.stop, p.trailer = header_size + #o.body, header_size + #o.body, seal_size
  bodies[p.type](p)
end

-- add_sealed shows a sealed body, and what is in it if the key log has the keys.
local function add_sealed(p)
  p.notes[#p.notes + 1] = "phase=" .. (band(p.flags, KEY_PHASE) ~= 0 and 1 or 0) .. " counter=" .. p.tvb(28, 4):uint()
  if p.stop < header_size then return malformed(p, p.tree, "no room for the seal") end
  bytes(p, p.tree, fields.sealed, header_size, p.stop - header_size)
  bytes(p, p.tree, fields.seal, p.stop, seal_size)
  local o = open_sealed(p)
  if o and o.body then return add_opened(p, o) end
  p.notes[#p.notes + 1] = "sealed=" .. p.stop - header_size
  if o then
    p.tree:add_proto_expert_info(experts.unopened, "Does not open: the key log has another key, or the packet is forged or damaged")
    p.notes[#p.notes + 1] = "[does not open]"
  end
end

local function add_trailer(p)
  if not captured(p, p.stop + trailer_size) then return end
  local item = p.tree:add(fields.crc, p.tvb(p.stop, trailer_size))
  if not datxdp.prefs.check_crc then return end
  local want = crc32c(p.tvb:raw(0, p.stop))
  if want == p.tvb(p.stop, trailer_size):uint() then
    item:append_text(" (good)")
    item:add_proto_expert_info(experts.crc_good)
    return
  end
  item:append_text(" (bad, should be " .. hex(want) .. ")")
  item:add_proto_expert_info(experts.crc_bad, "CRC32C is wrong, should be " .. hex(want))
  p.notes[#p.notes + 1] = "[bad CRC32C]"
end

-- title is the first word of the Info column: the type, or the operations of a Data packet.
local function title(p)
  if p.type ~= DATA or #p.names == 0 then return (types[p.type] or "type " .. p.type):upper() end
  local words = {}
  for i, c in ipairs(p.names) do words[i] = c.times > 1 and c.name .. "*" .. c.times or c.name end
  return table.concat(words, " ")
end

-- add_packet dissects a packet of this version, or Versions of any, and returns the first part of the Info column.
local function add_packet(p)
  local sealed = is_sealed(p, p.stop + trailer_size)
  if not fill(p, p.tree, header_layout, 0) or not fill(p, p.tree, sealed and counter_layout or tag_layout, 0) then
    return ""
  end
  local tvb = p.tvb
  p.flags, p.ack = tvb(1, 1):uint(), tvb(12, 4):uint()
  if sealed then
    p.stop = p.stop + trailer_size - seal_size
    add_sealed(p)
  else
    if bodies[p.type] then bodies[p.type](p) else malformed(p, p.tree, "unknown type") end
    add_trailer(p)
  end
  return title(p) .. " cid=" .. hex(tvb(4, 4):uint()) .. " psn=" .. tvb(8, 4):uint() .. " ack=" .. p.ack .. " "
end

-- add_other names the version of a packet that is not dissected.
local function add_other(p)
  p.tree:add(fields.version, p.tvb(0, 1))
  captured(p, p.stop + trailer_size)
  return string.format("version %d, not dissected ", p.version)
end

function datxdp.dissector(tvb, pinfo, root)
  pinfo.cols.protocol = "datxdp"
  local total = tvb:reported_len()
  local have = math.min(tvb:captured_len(), total)
  local p = { tvb = tvb, have = have, stop = total - trailer_size, trailer = trailer_size, pinfo = pinfo, notes = {}, names = {} }
  if have == 0 then return 0 end
  p.tree = root:add(datxdp, tvb(0, have))
  local first = tvb(0, 1):uint()
  p.type = first % 16
  p.version = (first - p.type) / 16
  local info = ""
  if total < header_size + trailer_size then
    malformed(p, p.tree, "shorter than header and trailer")
  elseif p.version == version or p.type == VERSIONS then
    info = add_packet(p)
  else
    info = add_other(p)
  end
  info = info .. table.concat(p.notes, " ")
  pinfo.cols.info = info
  p.tree:append_text(", " .. info)
  return total
end

local ports = DissectorTable.get("udp.port")
ports:add(default_port, datxdp)

local other = 0 -- the port that the preference has added
function datxdp.prefs_changed()
  local port = datxdp.prefs.port
  if port == other then return end
  if other ~= 0 then ports:remove(other, datxdp) end
  other = (port > 0 and port < 65536 and port ~= default_port) and port or 0
  if other ~= 0 then ports:add(other, datxdp) end
end
