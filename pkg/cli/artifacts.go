// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func taskArtifacts(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "artifacts TASK", Short: "List the files that a task left", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names("tasks")}
	f := addOutput(cmd, asTable, asJSON, asYAML, asName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		list, err := c.Tasks(namespace).ListArtifacts(cmd.Context(), args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		if *f == asJSON || *f == asYAML {
			return term.write(list.Artifacts, *f)
		}
		if len(list.Artifacts) == 0 {
			note(term.Err, "nothing found")
			return nil
		}
		return artifactTable(term, list.Artifacts, *f)
	}
	return cmd
}

// artifactTable prints the files as kubectl draws a table, or only their names.
func artifactTable(term *terminal, files []v1alpha1.TaskArtifact, f format) error {
	rows := [][]string{{"NAME", "SIZE", "TYPE", "AGE"}}
	for i := range files {
		name := clean(files[i].Filename)
		if f == asName {
			note(term.Out, name)
			continue
		}
		rows = append(rows, []string{name, strconv.FormatInt(files[i].Size, 10), clean(files[i].ContentType), term.age(files[i].CreatedAt.Time)})
	}
	if f == asName {
		return nil
	}
	return term.columns(rows)
}

func taskDownload(api *server, term *terminal) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "download TASK FILE", Short: "Save a file that a task left", Args: cobra.ExactArgs(2), ValidArgsFunction: api.names("tasks"),
		Example: "  platform task download primes report.html\n  platform task download primes data.json --output - | jq .",
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "file to write, which must not exist; - is standard output (default: the last part of FILE)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		body, err := c.RESTClient().Get().Namespace(namespace).Resource("tasks").Name(args[0]).SubResource("artifacts").Suffix(args[1]).Stream(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }() // it was only read
		if to == "-" {
			_, err = io.Copy(term.file(), body)
			return err
		}
		if to == "" {
			to = filepath.Base(args[1])
		}
		n, err := save(to, body)
		if err != nil {
			return err
		}
		return term.say("%s: %s", clean(to), many(int(n), "byte"))
	}
	return cmd
}

// file returns standard output for the content of a file, which a program reads as it is and a person does not.
func (term *terminal) file() io.Writer {
	if term.Width > 0 {
		return term.Out
	}
	return term.raw
}

// save writes a new file. One that exists is kept, because an agent chose the name.
func save(name string, body io.Reader) (int64, error) {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, fmt.Errorf("%s exists already; name another file with --output", name)
	}
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, body)
	if err = errors.Join(err, out.Close()); err != nil {
		return n, errors.Join(err, os.Remove(name))
	}
	return n, nil
}
