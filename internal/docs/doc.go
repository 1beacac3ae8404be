// Package docs holds the test that runs the commands of the documents. Above each block of commands, a
// comment says where it runs; a block without one fails the test, so that no command escapes.
//
//	<!-- run: host -->             here, without privilege
//	<!-- run: lab -->              as root on one of two hosts, which have eth0 with 10.0.0.1 and 10.0.0.2
//	<!-- run: lab, as nobody -->   there without privilege
//	<!-- run: lab, from the other -->
//	<!-- run: nic -->              as lab, but a veth need not support what ethtool is asked for
//	<!-- run: make -->             not at all: the targets have to be there
//	<!-- run: not here: WHY -->    not at all: the syntax is checked
//
// All but the last two see a copy of the repository, with bin/datbench built, and copies of /etc and
// /usr/local/bin: nothing that they change stays. Further clauses follow after semicolons:
//
//	; fails                        the commands have to fail
//	; WORD += FLAGS                commands with this word get flags that make them short
//
// In a block, a comment behind a command says which end it is for: "on one host" or "in one terminal"
// starts what goes on running, "on the other" is the other host. The words of a text block that follows
// have to be printed, where "…" stands for anything.
package docs
