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
	for pause := uploadPause; ; pause = min(2*pause, maxUploadPause) {
		err := w.post(ctx, contentType, body, path...)
		if err == nil || !client.Temporary(err) || ctx.Err() != nil {
			return err
		}
		if !client.Sleep(ctx, w.clock, pause) {
			return err
		}
	}
}

// fitResult prepares a result for sending: it removes secrets, and cuts a result that is too large.
func fitResult(text string, s *secrets) string {
	text, _ = s.seen.Output(s.scrub(text))
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

// submitArtifacts uploads the files of the artifacts folder. A file that cannot be uploaded
// gets an event and does not fail the task. It returns an error only if it could not continue
// because the worker was stopped or the token has expired.
func (w *worker) submitArtifacts(ctx context.Context) error {
	if w.config.ArtifactsDir == "" {
		return nil
	}
	names, err := artifactFiles(w.config.ArtifactsDir)
	if err != nil {
		w.artifactFailed("", err)
	}
	for i, name := range names {
		if i == maxArtifacts {
			w.artifactFailed(name, fmt.Errorf("more than %d files; %d were not uploaded", maxArtifacts, len(names)-i))
			break
		}
		err := w.submitArtifact(ctx, name)
		if undelivered(ctx, err) {
			return fmt.Errorf("upload artifact %s: %w", name, err)
		}
		if err != nil {
			w.artifactFailed(name, err)
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

func (w *worker) submitArtifact(ctx context.Context, name string) error {
	// Names of artifacts in the API cannot contain folders.
	filename := strings.ReplaceAll(filepath.ToSlash(name), "/", "_")
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

func (w *worker) artifactFailed(name string, err error) {
	sum := sha256.Sum256([]byte(name)) // a path may be longer than a key
	w.events.Record(event.New(v1alpha1.EventArtifactUploadFailed, v1alpha1.SeverityWarning, w.key("artifact-failed/"+hex.EncodeToString(sum[:])), fmt.Sprintf("artifact %s was not uploaded: %v", name, err),
		map[string]any{"artifact": name, "error": err.Error()}))
}
