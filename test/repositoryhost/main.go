// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command repositoryhost makes a git repository of a folder's files and serves it on loopback, for the quick start: everybody may read it,
// and whoever knows the token may push. It uses the git program, and ends with exit code 3 if its server is not installed.
package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/test/githost/gitfolder"
)

// exitNoGit is the exit code where git's server is not installed.
const exitNoGit = 3

var errNoGit = errors.New("the server of git, git-http-backend, is not installed")

// flags are those of the command.
type flags struct{ listen, from, dir, token string }

func main() {
	var f flags
	pflag.StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	pflag.StringVar(&f.from, "from", "", "folder with the files of the repository, which gets its name (required)")
	pflag.StringVar(&f.dir, "dir", "", "folder in which the repository is made (required)")
	pflag.StringVar(&f.token, "push-token", "", "password of pushes (required)")
	pflag.Parse()
	if pflag.NArg() > 0 || f.from == "" || f.dir == "" || f.token == "" {
		pflag.Usage()
		os.Exit(2)
	}
	if err := run(f); err != nil {
		fmt.Fprintln(os.Stderr, "repositoryhost:", err)
		if errors.Is(err, errNoGit) {
			os.Exit(exitNoGit)
		}
		os.Exit(1)
	}
}

// run serves the repository until a signal comes.
func run(f flags) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder, name := gitfolder.Folder(f.dir), filepath.Base(f.from)
	git, err := folder.Handler()
	if err != nil {
		return fmt.Errorf("%w: %w", errNoGit, err)
	}
	if err := fill(ctx, folder, name, f.from); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "repositoryhost: serving http://%s/%s.git\n", l.Addr(), name)
	srv := &http.Server{Handler: pushing(f.token, git), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// fill makes the repository, whose branch main has the files of a folder.
func fill(ctx context.Context, folder gitfolder.Folder, name, from string) error {
	files, tree := map[string]string{}, os.DirFS(from)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		return err
	}
	if err := folder.Create(ctx, name); err != nil {
		return err
	}
	_, err = folder.Commit(ctx, name, "main", "The first version", files)
	return err
}

// pushing lets those push who have the token.
func pushing(token string, git http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if strings.Contains(r.URL.RequestURI(), "git-receive-pack") && subtle.ConstantTimeCompare([]byte(password), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	})
}
