// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/writetimeout"
	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/backup"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// backupRetry is after how many seconds a client should retry if another backup is in progress.
const backupRetry = 30

// BackupOptions configure the handler of archive.Path. All fields are required.
type BackupOptions struct {
	// Engine is the store.
	Engine engine.Engine
	// Scheme is the scheme of the server. It is used to encode refusals.
	Scheme *runtime.Scheme
	// Clock provides the time of a backup.
	Clock clock.PassiveClock
	// WriteTimeout is how long a client may accept no data before it is disconnected. A stalled client blocks other
	// backups, and keeps files on the disk.
	WriteTimeout time.Duration
}

// NewBackup returns a handler that serves backups of the store. A caller who may get one can read everything that is
// stored.
//
// A backup that fails half-way ends with a broken connection, so that it cannot be mistaken for a complete one.
func NewBackup(o BackupOptions) http.Handler {
	codecs := Codecs(o.Scheme)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := o.serve(w, r); err != nil {
			responsewriters.RespondWithError(w, r, err, codecs)
		}
	})
}

// serve returns an API error if the request was refused before anything was written.
func (o *BackupOptions) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, schema.GroupResource{Resource: "backup"}, "", "use GET to read a backup", 0, false)
	}
	ctx := r.Context()
	began := o.Clock.Now()
	source, err := backup.Open(ctx, o.Engine, began)
	switch {
	case errors.Is(err, engine.ErrCheckpoint):
		return apierrors.NewTooManyRequests("another backup is being read; only one can be read at a time", backupRetry)
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	log := klog.FromContext(ctx).WithValues("revision", source.Manifest().Revision, "bytes", source.Manifest().Size())
	err = o.send(ctx, w, source)
	if err := source.Close(); err != nil {
		log.Error(err, "The copy of the store that a backup read could not be removed; the next start removes it")
	}
	if err != nil {
		log.Error(err, "Backup broke off", "duration", o.Clock.Since(began))
	} else {
		log.Info("Backup was read", "duration", o.Clock.Since(began))
	}
	return nil
}

func (o *BackupOptions) send(ctx context.Context, w http.ResponseWriter, source *backup.Source) (err error) {
	out := writetimeout.NewWriter(w, o.WriteTimeout)
	interrupted := make(chan struct{})
	interrupt := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		out.Break()
	})
	defer func() {
		if !interrupt() {
			<-interrupted // the response must not be used after this function returns
		}
		if err != nil {
			out.Break()
		}
	}()
	m := source.Manifest()
	h := w.Header()
	h.Set("Content-Type", archive.ContentType)
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fmt.Sprintf("platform-%d.tar", m.Revision)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	return source.Write(ctx, out)
}
