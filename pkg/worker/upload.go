// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/worker/client"
)

const (
	// maxResult and maxArtifact are the limits of the API, in bytes.
	maxResult   = 10_000_000
	maxArtifact = 10_000_000
	// maxArtifacts bounds how many files are uploaded.
	maxArtifacts = 100
	maxFilename  = 255
	// uploadPause doubles up to maxUploadPause. At least 5 tries are required, with pauses of 2,
	// 4, 8 and 16 s; more follow as long as a retry may succeed.
	uploadPause    = 2 * time.Second
	maxUploadPause = 16 * time.Second

	octets = "application/octet-stream"
)

// postBytes posts raw bytes to a subresource of the task.
func postBytes(ctx context.Context, a *client.API, c *Config, contentType string, body []byte, path ...string) error {
	return a.CoreV1alpha1().RESTClient().Post().
		Namespace(c.TaskNamespace).Resource("tasks").Name(c.TaskName).Suffix(path...).
		SetHeader("Content-Type", contentType).Body(body).Do(ctx).Error()
}

// upload posts until it succeeds. A permanent error ends it at once, and so does the end of ctx.
func (w *worker) upload(ctx context.Context, contentType string, body []byte, path ...string) error {
	faults := client.Faults{Most: client.WorkFaults}
	for pause := uploadPause; ; pause = min(2*pause, maxUploadPause) {
		err := w.post(ctx, contentType, body, path...)
		if err == nil || !faults.Again(err) || ctx.Err() != nil {
			return err
		}
		if !client.Sleep(ctx, w.clock, pause) {
			return err
		}
	}
}

// fitResult prepares a result for sending: it removes secrets, and cuts a result that is too large.
func fitResult(text string, s *secrets) string {
	text, _ = s.seen.Output(text)
	if len(text) > maxResult {
		text = strings.ToValidUTF8(text[:maxResult-64], "") + "\n[the result was longer and is cut here]\n"
	}
	return text
}

// submitResult uploads a result that fits, and records an event about it.
func (w *worker) submitResult(ctx context.Context, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if err := w.upload(ctx, octets, []byte(text), "result"); err != nil {
		return fmt.Errorf("upload result: %w", err)
	}
	w.events.Record(event.New(v1alpha1.EventResultSubmitted, v1alpha1.SeverityInfo, w.key("result"), "result submitted", map[string]any{"resultLength": len(text)}))
	return nil
}

// submitArtifacts uploads the files of the artifacts folder, those of shown under other names. A file that cannot be uploaded
// gets an event and does not fail the task. It returns an error only if it could not continue
// because the worker was stopped or the token has expired.
func (w *worker) submitArtifacts(ctx context.Context, shown map[string]string) error {
	if w.config.ArtifactsDir == "" {
		return nil
	}
	names, err := artifactFiles(w.config.ArtifactsDir)
	if err != nil {
		w.artifactFailed("", "", err)
	}
	for i, name := range names {
		if i == maxArtifacts {
			w.artifactFailed(name, shownName(name, shown), fmt.Errorf("more than %d files; %d were not uploaded", maxArtifacts, len(names)-i))
			break
		}
		filename := shownName(name, shown)
		err := w.submitArtifact(ctx, name, filename)
		if undelivered(ctx, err) {
			return fmt.Errorf("upload artifact %s: %w", filename, err)
		}
		if err != nil {
			w.artifactFailed(name, filename, err)
		}
	}
	return nil
}

// artifactFiles returns the paths of regular files, relative to dir. It does not follow links.
func artifactFiles(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return names, err
}

// shownName returns the name of an artifact in the API: the one in shown, or else its path; names in the API cannot contain
// folders.
func shownName(name string, shown map[string]string) string {
	if filename, hidden := shown[name]; hidden {
		return filename
	}
	return strings.ReplaceAll(filepath.ToSlash(name), "/", "_")
}

// shownNames returns the names under which files of the artifacts folder are uploaded whose paths contain secrets, or whose
// names in the API are those of other files: of a/b and a_b, the first gets another name. A worker that only delivers does not have
// the secrets, so the names are a part of the end of the work.
func shownNames(dir string, s *secrets) map[string]string {
	names, err := artifactFiles(dir)
	if dir == "" || err != nil {
		return nil // the upload reports it
	}
	owners := map[string]string{} // by name in the API
	for _, name := range names {
		filename := shownName(name, nil)
		if _, taken := owners[filename]; !taken || filename == name { // a file that is in no folder keeps its name
			owners[filename] = name
		}
	}
	var shown map[string]string
	for _, name := range names {
		filename := shownName(name, nil)
		clean, changed := s.seen.Output(strings.ToValidUTF8(filename, "\uFFFD"))
		if !changed {
			if owners[filename] == name {
				continue
			}
			clean = filename
		}
		free := clean
		for n := 2; owners[free] != ""; n++ {
			free = fmt.Sprintf("%s-%d", clean, n)
		}
		if shown == nil {
			shown = map[string]string{}
		}
		shown[name], owners[free] = free, name
	}
	return shown
}

func (w *worker) submitArtifact(ctx context.Context, name, filename string) error {
	if len(filename) > maxFilename {
		return fmt.Errorf("the name is longer than %d bytes", maxFilename)
	}
	body, err := readArtifact(w.config.ArtifactsDir, name)
	if err != nil {
		return err
	}
	// The server detects the media type from name and content.
	if err := w.upload(ctx, octets, body, "artifacts", filename); err != nil {
		return err
	}
	w.events.Record(event.New(v1alpha1.EventArtifactUploadCompleted, v1alpha1.SeverityInfo, w.key("artifact/"+filename), "artifact "+filename+" uploaded",
		map[string]any{"artifact": filename, "size": len(body)}))
	return nil
}

// readArtifact opens the file through os.Root, because a program of the run may have replaced part of the path by a
// link.
func readArtifact(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	body, err := io.ReadAll(io.LimitReader(f, maxArtifact+1))
	if err == nil && len(body) > maxArtifact {
		err = fmt.Errorf("larger than %d bytes", maxArtifact)
	}
	return body, err
}

func (w *worker) artifactFailed(name, filename string, err error) {
	why := err.Error()
	if name != "" {
		why = strings.ReplaceAll(why, name, filename)
	}
	sum := sha256.Sum256([]byte(name)) // a path may be longer than a key
	w.events.Record(event.New(v1alpha1.EventArtifactUploadFailed, v1alpha1.SeverityWarning, w.key("artifact-failed/"+hex.EncodeToString(sum[:])), fmt.Sprintf("artifact %s was not uploaded: %s", filename, why),
		map[string]any{"artifact": filename, "error": why}))
}
