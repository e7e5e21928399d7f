// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/storage/archive"
)

const backupHelp = `Write a backup of the server's store to a file.

The server keeps serving meanwhile. The backup has everything that was acknowledged before it began: tasks, sessions,
events, results, and all other objects, but not what is in the folders of runs. It is checked while it is received, and
FILE is there as a whole or not at all. Without FILE the name is platform-TIME.tar; with - it is standard output, where
only exit code 0 says that it is whole. 'platform-standalone restore', in a cluster 'platform-apiserver restore', turns
it into a store again.

It needs get on the path /backup, which cluster-admin and platform-backup have. Keep it as you would keep the server's
disk: it has every prompt and every result.

The keys of platform-standalone, DIR/pki, are not in it. Without DIR/pki/secrets.key the Secrets in a backup cannot be
read again, by anybody. It rarely changes: copy the folder once, and again when you change a key, to a safe place that
is not that of the backups. In a cluster, Secrets are the cluster's own and not in this store.

Tokens of accounts that people linked are in it, encrypted. The keys are in the server's --connector-key-file, otherwise
DIR/connections.key, which is not in it: copy that file, too, apart from the backups. Without it nobody can read the tokens
again, and whoever has both can.

In a cluster, ask the platform's own Service, since kube-apiserver does not forward this path:

  kubectl -n platform-system port-forward service/platform-apiserver 8443:443 &
  kubectl get apiservice v1alpha1.core.platform.ai -o jsonpath='{.spec.caBundle}' | base64 -d > ca.crt
  platform backup --server https://127.0.0.1:8443 --tls-server-name platform-apiserver.platform-system.svc \
    --certificate-authority ca.crt --token "$(kubectl -n platform-system create token ACCOUNT)"

where ACCOUNT is a ServiceAccount that is bound to platform-backup. In a Pod or a CronJob of that account:

  platform backup --server https://platform-apiserver.platform-system.svc --certificate-authority ca.crt \
    --token-file /var/run/secrets/kubernetes.io/serviceaccount/token /backups/platform.tar --force`

type backupFlags struct {
	force     bool
	tokenFile string
}

func backupCommand(api *server, term *terminal) *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use: "backup [FILE]", Short: "Write a backup of the server's store", Long: backupHelp, Args: cobra.MaximumNArgs(1),
		Example: "  platform backup\n  platform backup /backups/today.tar\n  platform backup - | gzip > today.tar.gz",
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "replace FILE if it is there")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the bearer token, instead of what the kubeconfig says")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file := "platform-" + term.clock.Now().UTC().Format("20060102T150405Z") + ".tar"
		if len(args) > 0 {
			file = args[0]
		}
		return saveBackup(cmd.Context(), api, term, file, &f)
	}
	return cmd
}

func saveBackup(ctx context.Context, api *server, term *terminal, file string, f *backupFlags) error {
	if file != "-" && !f.force {
		if _, err := os.Lstat(file); err == nil { // before the server makes a backup
			return fmt.Errorf("%s is there already; choose another name, or --force to replace it", file)
		}
	}
	body, err := openBackup(ctx, api, f.tokenFile)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	var m *archive.Manifest
	if file == "-" {
		m, err = archive.Copy(ctx, term.raw, body)
	} else {
		m, err = archive.Save(ctx, file, body, f.force)
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%w; another command may be writing it. If not, remove it, or use --force", err)
	case errors.Is(err, archive.ErrInvalid):
		return fmt.Errorf("%w; the server may have stopped meanwhile: try again", err)
	case err != nil:
		return err
	}
	text := fmt.Sprintf("backup of revision %d, %s in %s", m.Revision, archive.Bytes(m.Size()), many(len(m.Files), "file"))
	if file == "-" {
		note(term.Err, text)
		return nil
	}
	return term.say("%s: %s", text, file)
}

// openBackup requests a backup from the server.
func openBackup(ctx context.Context, api *server, tokenFile string) (io.ReadCloser, error) {
	c, err := api.config()
	if err != nil {
		return nil, err
	}
	if tokenFile != "" {
		c.BearerToken, c.BearerTokenFile = "", tokenFile
	}
	set, err := versioned.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	// Do not retry: if another backup is in progress, the person or the timer should learn about
	// it.
	body, err := set.CoreV1alpha1().RESTClient().Get().AbsPath(archive.Path).MaxRetries(0).Stream(ctx)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch status.Status().Code {
		case http.StatusNotFound:
			return nil, fmt.Errorf("%s has no backups: is it a kube-apiserver, which does not forward this path? Ask the platform's own Service with --server, see 'platform backup --help'", c.Host)
		case http.StatusForbidden:
			return nil, fmt.Errorf("%s; it takes the role platform-backup. A kube-apiserver does not forward this path, whatever the role: see 'platform backup --help'", explain(err))
		}
	}
	return body, err
}
