// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/backup"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

const restoreHelp = `Make the store of a server from a backup.

The store becomes DIR/store, where DIR is the --data-dir of the server that will use it (/data in a cluster, on the
volume of the StatefulSet while it has no replica). There must be no store: stop the server and move it away first, or let
--set-aside move it to DIR/store-TIME. The backup is unpacked next to that place, opened, and read to the last value; only
then is the old store moved away and the new one moved there. If anything is wrong with it, the folder is left as it was.

The restored store goes on at a far higher revision, and clients that watched the old one are told to list again:
they may have seen changes that are not in the backup. Streams of events may reuse sequence numbers that were given
after the backup.

The keys of platform-standalone are not in a backup. To read the Secrets in it again, and to accept the kubeconfigs and
tokens that were given, put the pki folder of the server that made the backup at DIR/pki before the server starts. A
server that finds none makes new keys; each Secret must then be deleted unread, and written again:

  kubectl delete --raw '/api/v1/namespaces/NAMESPACE/secrets/NAME?ignoreStoreReadErrorWithClusterBreakingPotential=true'

The key file of accounts that people linked (--connector-key-file, otherwise DIR/connections.key) is not in a backup either. Without the
keys of the server that made the backup nobody can read the tokens of these accounts. Put the file there before the server starts: a
server that finds none makes a new key.`

// NewRestoreCommand returns the restore command of the named server program, which creates the server's store from a
// backup.
func NewRestoreCommand(program string) *cobra.Command {
	var dir string
	var aside bool
	cmd := &cobra.Command{
		Use: "restore FILE --data-dir DIR", Short: "Make the store of this server from a backup", Long: restoreHelp, Args: cobra.ExactArgs(1),
		Example: fmt.Sprintf("  %[1]s restore today.tar --data-dir /var/lib/platform\n  gunzip < today.tar.gz | %[1]s restore - --data-dir /var/lib/platform", program),
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "data folder of the server")
	_ = cmd.MarkFlagRequired("data-dir") // the flag exists
	cmd.Flags().BoolVar(&aside, "set-aside", false, "keep a store that is there beside the new one, as store-TIME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stores := localStores()
		if aside {
			stores.Aside = filepath.Join(dir, archive.StoreFolder+"-"+clock.RealClock{}.Now().UTC().Format("20060102T150405Z"))
		}
		return restore(cmd.Context(), cmd, args[0], dir, stores)
	}
	return cmd
}

func restore(ctx context.Context, cmd *cobra.Command, file, dir string, stores backup.Stores) error {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	accounts := 0
	stores.Open = counting(stores.Open, &accounts)
	r, err := backup.Restore(ctx, in, dir, stores)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(),
		"restored %s\n  made       %s by platform %s\n  revision   %d, goes on at %d\n  objects    %d\n  events     %d\n  files      %d\n  messages   %d\n  size       %s\n",
		r.Dir, r.Time.Format(time.RFC3339), r.Program, r.Revision, r.Base, r.Objects, r.Events, r.Contents.Files, r.Messages, archive.Bytes(r.Size()))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "pki", "secrets.key")); errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no keys. A platform-standalone can read the Secrets in this store only with the pki folder of the server that made the backup: put it there before the server starts.\n", dir)
		if err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(dir, connectorKeysFile)); accounts > 0 && errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "People have linked accounts in this store (%d), and %s has no %s. Their tokens can be read only with the key file of the server that made the backup: put it there, or name it with --connector-key-file, before the server starts.\n", accounts, dir, connectorKeysFile)
		return err
	}
	return nil
}

// counting returns an open that also counts the connections that have tokens, which it does not read.
func counting(open func(context.Context, string) (engine.Engine, error), accounts *int) func(context.Context, string) (engine.Engine, error) {
	return func(ctx context.Context, dir string) (engine.Engine, error) {
		e, err := open(ctx, dir)
		if err != nil {
			return nil, err
		}
		err = custody.New(e, nil).Owners(ctx, func(_ types.UID, gone bool) error {
			if !gone {
				*accounts++
			}
			return nil
		})
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		return e, nil
	}
}

// localStores are the stores that OpenStores opens.
func localStores() backup.Stores {
	return backup.Stores{
		Lock: local.Lock,
		Open: func(ctx context.Context, dir string) (engine.Engine, error) {
			e, err := local.Open(ctx, local.Options{Dir: dir, OnCorruption: func(error) {}}) // reading returns the error
			if err != nil {
				return nil, err
			}
			return e, nil
		},
		Forget: func(dataDir string) error { return local.RemoveMark(filepath.Join(dataDir, local.MarkFile)) },
	}
}
