// Package docs has the test that runs the commands of the documents. A comment above each block of commands says where
// it runs. A block without such a comment fails the test, so no command is forgotten.
//
//	<!-- run: host -->             on this host, without privilege
//	<!-- run: lab -->              as root on one of two hosts, which have eth0 with 10.0.0.1 and 10.0.0.2
//	<!-- run: lab, as nobody -->   on the same host without privilege
//	<!-- run: lab, from the other -->  on the other host
//	<!-- run: nic -->              as lab; ethtool may fail, because a veth does not support everything
//	<!-- run: make -->             not run; the targets must exist
//	<!-- run: not here: WHY -->    not run; the syntax is checked
//
// Except for the last two kinds, the commands see a copy of the repository, with bin/datbench built, and copies of /etc
// and /usr/local/bin, so their changes do not last. More clauses may follow, each after a semicolon:
//
//	; fails                        the commands must fail
//	; WORD += FLAGS                commands with this word get flags that make them short
//
// In a block, a comment behind a command says where the command runs. "on one host" and "in one terminal" begin
// commands that keep running; "on the other" means the other host. If a text block follows, the commands must print its
// words; "…" matches anything.
//
// With -short the test runs only the commands of the examples. Those are run as they are written, without more flags.
package docs
