package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/internal/identity"
)

const keygenHelp = `keygen makes keys for secure mode (docs/SECURITY.md): for --key and --peers of server and run.

It writes a new private key to FILE, with access for this user only, and prints the public key. That
is the first word of this host's line in the file of peers of the other host. It replaces no file.

With --psk it writes a new shared secret to FILE: a line for the files of peers of both hosts. With
--public it prints the public keys of an existing key file, one a line.

Exit status: 0 done, 2 it could not be done.`

const keygenExamples = `  datbench keygen /etc/datxdp.key
  datbench keygen --public /etc/datxdp.key
  datbench keygen --psk peers`

func (a *app) keygenCommand() *cobra.Command {
	var secret, public bool
	c := &cobra.Command{
		Use:     "keygen FILE",
		Short:   "Make a private key or a shared secret for secure mode",
		Long:    keygenHelp,
		Example: keygenExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return errors.New("keygen needs one file: datbench keygen FILE")
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case secret:
				return a.makeSecret(args[0])
			case public:
				return a.printPublic(args[0])
			}
			return a.makeKey(args[0])
		},
	}
	c.Flags().BoolVar(&secret, "psk", false, "make a secret that both hosts share, for a file of peers")
	c.Flags().BoolVar(&public, "public", false, "print the public keys of a key file")
	c.MarkFlagsMutuallyExclusive("psk", "public")
	return c
}

func (a *app) makeKey(name string) error {
	key, err := identity.CreateKey(name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, identity.Text(key))
	return err
}

func (a *app) makeSecret(name string) error {
	if err := identity.CreateSecret(name); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s has a line with a shared secret: copy it to the file of peers of both hosts\n", name)
	return err
}

func (a *app) printPublic(name string) error {
	keys, err := identity.ReadKeys(name)
	if err != nil {
		return err
	}
	for _, key := range keys.Public() {
		if _, err := fmt.Fprintln(a.stdout, identity.Text(key)); err != nil {
			return err
		}
	}
	return nil
}
