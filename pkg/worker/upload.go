// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
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
	"github.com/platform-ai/platform/pkg/redact"
)

const (
	// maxResult and maxArtifact are the limits of the API (D2 §8).
	maxResult   = 10_000_000
	maxArtifact = 10_000_000
	// maxArtifacts bounds how many files are uploaded.
	maxArtifacts = 100
	maxFilename  = 255
	// uploadTries and the pauses between them, which double from 2 s, are the
	// result rule of the spec: 5 tries, 2-4-8-16 s.
	uploadTries = 5
	uploadPause = 2 * time.Second

	octets = "application/octet-stream"
)

// postBytes posts raw bytes to a subresource of the task.
func (a *api) postBytes(ctx context.Context, c *Config, contentType string, body []byte, path ...string) error {
	return a.CoreV1alpha1().RESTClient().Post().
		Namespace(c.TaskNamespace).Resource("tasks").Name(c.TaskName).Suffix(path...).
		SetHeader("Content-Type", contentType).Body(body).Do(ctx).Error()
}

// upload posts with the pauses of the spec. An error that cannot go away ends it at once.
func (w *worker) upload(ctx context.Context, contentType string, body []byte, path ...string) error {
	for try, pause := 1, uploadPause; ; try, pause = try+1, 2*pause {
		err := w.post(ctx, contentType, body, path...)
		if err == nil || !temporary(err) || try == uploadTries {
			return err
		}
		if !sleep(ctx, w.clock, pause) {
			return err
		}
	}
}

// submitResult uploads the result and says so. A result that is too large is cut.
func (w *worker) submitResult(ctx context.Context, text string) error {
	text, _ = redact.Output(w.secret.scrub(text))
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if len(text) > maxResult {
		text = strings.ToValidUTF8(text[:maxResult-64], "") + "\n[the result was longer and is cut here]\n"
	}
	if err := w.upload(ctx, octets, []byte(text), "result"); err != nil {
		return fmt.Errorf("upload result: %w", err)
	}
	w.events.Record(event.New(v1alpha1.EventResultSubmitted, v1alpha1.SeverityInfo, "", "result submitted", map[string]any{"resultLength": len(text)}))
	return nil
}

// submitArtifacts uploads the files of the artifacts folder. A file that
// cannot be uploaded gets an event and does not fail the task.
func (w *worker) submitArtifacts(ctx context.Context) {
	if w.config.ArtifactsDir == "" {
		return
	}
	names, err := artifactFiles(w.config.ArtifactsDir)
	if err != nil {
		w.artifactFailed("", err)
	}
	for i, name := range names {
		if i == maxArtifacts {
			w.artifactFailed(name, fmt.Errorf("more than %d files; %d were not uploaded", maxArtifacts, len(names)-i))
			return
		}
		if err := w.submitArtifact(ctx, name); err != nil {
			w.artifactFailed(name, err)
		}
	}
}

// artifactFiles lists regular files, by path below dir. Links are not followed.
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
	// The API's artifacts have no folders.
	filename := strings.ReplaceAll(filepath.ToSlash(name), "/", "_")
	if len(filename) > maxFilename {
		return fmt.Errorf("the name is longer than %d bytes", maxFilename)
	}
	body, err := readArtifact(w.config.ArtifactsDir, name)
	if err != nil {
		return err
	}
	// The server finds the media type by name and content.
	if err := w.upload(ctx, octets, body, "artifacts", filename); err != nil {
		return err
	}
	w.events.Record(event.New(v1alpha1.EventArtifactUploadCompleted, v1alpha1.SeverityInfo, "", "artifact "+filename+" uploaded",
		map[string]any{"artifact": filename, "size": len(body)}))
	return nil
}

// readArtifact opens through os.Root: a program of the run may have put a link in the way.
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
	w.events.Record(event.New(v1alpha1.EventArtifactUploadFailed, v1alpha1.SeverityWarning, "", fmt.Sprintf("artifact %s was not uploaded: %v", name, err),
		map[string]any{"artifact": name, "error": err.Error()}))
}
