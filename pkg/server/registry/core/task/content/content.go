// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package content stores and serves what tasks leave behind besides events: result, log, artifacts, what they changed in their workspace, and
// the calls of tools that policies judged. It is kept in the blob store by the task's UID. Content may be written while its task runs; after that, only controllers
// write it (end.go).
//
// Followers of a log and the writes that they wait for (followers.go) meet in memory, which suffices because one process writes the
// store. A follower takes a channel, looks at the store, and waits for the channel, which the next write of the log or the end of its
// task closes. It looks at the store only after a change.
package content

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

const (
	// MaxBytes is the maximum size of a result, of an artifact and of one piece of log, in bytes.
	MaxBytes = 10 << 20
	// maxFilename is the maximum length of an artifact's name, in bytes.
	maxFilename = 255
	// resultBlob is the name of the result in the blob store.
	resultBlob = "result"
	// deltaBlob is the name of what the run changed in its workspace.
	deltaBlob = "delta"
	// artifactBlob is the prefix of an artifact's name in the blob store.
	artifactBlob = "artifact/"
)

// Options are what the content of tasks needs. All fields are required.
type Options struct {
	Tasks stored.Tasks
	Log   *eventlog.Log
	Blobs *blob.Store
	Clock clock.Clock
	// Authorizer decides who may write content of a task that has ended.
	Authorizer authorizer.Authorizer
	// Guard limits workers to their own task.
	Guard resource.Guard[*v1alpha1.Task]
}

// Contents serves the result, the log, the artifacts and the calls of tasks.
type Contents struct {
	o         Options
	ends      ends
	followers followers
}

// New returns the content of tasks.
func New(o Options) *Contents { return &Contents{o: o} }

// Ending waits until all content of a task that is being written is stored, and blocks further writes until done is called: an event
// that ends the task is being stored.
func (r *Contents) Ending(uid types.UID) (done func()) { return r.ends.end(uid) }

// Over tells the followers of a task's log that nothing more will be written, because the task has ended or is gone.
func (r *Contents) Over(uid types.UID) { r.followers.wake(uid, true) }

// Result serves GET and POST of the result.
func (r *Contents) Result(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	if p.Path != "" {
		return nil, notFound("result/" + p.Path)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			r.putResult(w, req, p.Object, respond)
			return
		}
		if out, err := r.result(req.Context(), p.Object, wellformed.Query(req)); err != nil {
			respond.Error(err)
		} else {
			respond.Object(http.StatusOK, out)
		}
	}), nil
}

func (r *Contents) result(ctx context.Context, t *v1alpha1.Task, q url.Values) (*v1alpha1.TaskResult, error) {
	inParts, err := wantsParts(q)
	if err != nil {
		return nil, err
	}
	_, data, ok, err := r.o.Blobs.File(ctx, t.UID, resultBlob)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, noResult(t)
	}
	out := &v1alpha1.TaskResult{Result: string(data)}
	if inParts {
		out.Structured, err = r.structured(ctx, t, out.Result)
	}
	return out, err
}

// HasResult reports whether the task with a UID has stored a result.
func (r *Contents) HasResult(ctx context.Context, uid types.UID) (bool, error) {
	files, err := r.o.Blobs.Files(ctx, uid)
	return slices.ContainsFunc(files, func(f blob.File) bool { return f.Name == resultBlob }), err
}

// noResult returns the error for a missing result, which says whether the result may still arrive.
func noResult(t *v1alpha1.Task) error {
	err := apierrors.NewNotFound(v1alpha1.Resource("tasks/result"), t.Name)
	switch phase := cmp.Or(t.Status.Phase, v1alpha1.TaskPending); {
	case phase.Terminal():
		err.ErrStatus.Message = fmt.Sprintf("task %q has no result: it is %s and left none", t.Name, phase)
	case t.Status.Message != "":
		err.ErrStatus.Message = fmt.Sprintf("the result of task %q is still to come: it is %s: %s", t.Name, phase, t.Status.Message)
	default:
		err.ErrStatus.Message = fmt.Sprintf("the result of task %q is still to come: it is %s", t.Name, phase)
	}
	return err
}

func (r *Contents) putResult(w http.ResponseWriter, req *http.Request, t *v1alpha1.Task, respond rest.Responder) {
	data, err := r.body(w, req, t)
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		err = apierrors.NewBadRequest("a result must not be blank")
	}
	if err == nil {
		if clean, changed := redact.Output(string(data)); changed {
			data = []byte(clean)
		}
		f := blob.File{Name: resultBlob, ContentType: "text/plain", CreatedAt: r.o.Clock.Now()}
		err = r.keep(req.Context(), t, "result", func(ctx context.Context) error { return r.o.Blobs.PutFile(ctx, t.Namespace, t.UID, f, data) })
	}
	if err != nil {
		respond.Error(err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Logs serves GET and POST of the log.
func (r *Contents) Logs(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	if p.Path != "" {
		return nil, notFound("log/" + p.Path)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			data, err := r.body(w, req, p.Object)
			if err == nil && len(data) > 0 {
				clean, _ := redact.Text(string(data))
				err = r.keep(req.Context(), p.Object, "log", func(ctx context.Context) error {
					return r.o.Blobs.AppendLog(ctx, p.Object.Namespace, p.Object.UID, []byte(clean))
				})
				r.followers.wake(p.Object.UID, false)
			}
			if err != nil {
				respond.Error(err)
				return
			}
			w.WriteHeader(http.StatusNoContent)
			return
		}
		view, err := logViewOf(req)
		if err != nil {
			respond.Error(err)
			return
		}
		r.readLog(w, req, p.Object, view, respond)
	}), nil
}

// readLog writes a view of the log: its present content and, when following, what is appended until
// the task has ended or is gone. After that it reads the log once more, so that nothing written
// before the end is missed. A client that reconnects goes on where it was, and gets 204 when nothing can follow.
func (r *Contents) readLog(w http.ResponseWriter, req *http.Request, t *v1alpha1.Task, view logView, respond rest.Responder) {
	ctx := req.Context()
	next, leave := r.followers.follow(t.UID)
	defer leave()
	over := !view.follow || r.ended(ctx, t) // as it is now: what happened before is not told
	if err := r.placeLog(t, &view); err != nil {
		respond.Error(err)
		return
	}
	offset := view.after
	var out io.WriteCloser // nil until the answer begins
	defer func() {
		if out != nil {
			_ = out.Close() // the reader may be gone, so there is nobody to report an error to
		}
	}()
	for {
		ended, changed := next()
		ended = ended || over
		data, err := r.o.Blobs.ReadLog(ctx, t.UID, offset)
		if err != nil && out == nil {
			respond.Error(err)
			return
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Log ends early", "task", klog.KObj(t), "offset", offset)
			return
		}
		if out == nil && view.resumed && ended && len(data) == 0 {
			w.WriteHeader(http.StatusNoContent) // or a browser would reconnect forever
			return
		}
		if out == nil {
			out = view.writer(w, r.o.Clock)
			w.WriteHeader(http.StatusOK)
		}
		offset += int64(len(data))
		if !write(w, out, data) || len(data) == 0 && ended {
			return
		}
		if len(data) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// placeLog makes a view begin at the beginning if the log has not reached its position.
func (r *Contents) placeLog(t *v1alpha1.Task, v *logView) error {
	if v.after == 0 {
		return nil
	}
	end, err := r.o.Blobs.LogEnd(t.UID)
	if err != nil {
		return err
	}
	if v.gap = timeline.Ahead(v.after, end); v.gap != nil {
		v.after, v.resumed = 0, false
	}
	return nil
}

// write writes data to out, which writes to w, and flushes it. It reports whether the reader is
// still connected.
func write(w http.ResponseWriter, out io.Writer, data []byte) bool {
	if _, err := out.Write(data); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// ended reports whether the task will write nothing more.
func (r *Contents) ended(ctx context.Context, t *v1alpha1.Task) bool {
	// The context of a connected request lacks the namespace.
	now, err := r.o.Tasks.Get(request.WithNamespace(ctx, t.Namespace), t.Name)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return now.UID != t.UID || now.Status.Phase.Terminal()
}

// Artifacts serves the list of artifacts and, below it, each file.
func (r *Contents) Artifacts(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var err error
		switch {
		case req.Method == http.MethodPost:
			err = r.putArtifact(w, req, p)
		case p.Path == "":
			err = r.listArtifacts(req.Context(), p.Object, respond)
		default:
			err = r.getArtifact(w, req, p)
		}
		if err != nil {
			respond.Error(err)
		}
	}), nil
}

// Delta serves GET and POST of what the run changed in its workspace. It is kept as the worker sent it: a commit is made of it, whose
// content nobody may change.
func (r *Contents) Delta(_ context.Context, p stored.Parent, respond rest.Responder) (http.Handler, error) {
	if p.Path != "" {
		return nil, notFound("delta/" + p.Path)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var err error
		if req.Method == http.MethodPost {
			err = r.putDelta(w, req, p.Object)
		} else {
			err = r.getDelta(w, req, p.Object)
		}
		if err != nil {
			respond.Error(err)
		}
	}), nil
}

func (r *Contents) putDelta(w http.ResponseWriter, req *http.Request, t *v1alpha1.Task) error {
	data, err := r.body(w, req, t)
	if err != nil {
		return err
	}
	if t.Spec.Workspace == nil {
		return apierrors.NewBadRequest("delta: the task has no workspace")
	}
	f := blob.File{Name: deltaBlob, ContentType: "application/gzip", CreatedAt: r.o.Clock.Now()}
	err = r.keep(req.Context(), t, "delta", func(ctx context.Context) error { return r.o.Blobs.PutFile(ctx, t.Namespace, t.UID, f, data) })
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (r *Contents) getDelta(w http.ResponseWriter, req *http.Request, t *v1alpha1.Task) error {
	f, data, ok, err := r.o.Blobs.File(req.Context(), t.UID, deltaBlob)
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewNotFound(v1alpha1.Resource("tasks/delta"), t.Name)
	}
	send(w, req, f, data, t.Name+".delta.tar.gz")
	return nil
}

func (r *Contents) putArtifact(w http.ResponseWriter, req *http.Request, p stored.Parent) error {
	if err := checkFilename(p.Path); err != nil {
		return err
	}
	data, err := r.body(w, req, p.Object)
	if err != nil {
		return err
	}
	f := blob.File{Name: artifactBlob + p.Path, ContentType: contentType(req, p.Path, data), CreatedAt: r.o.Clock.Now()}
	err = r.keep(req.Context(), p.Object, "artifacts", func(ctx context.Context) error {
		return r.o.Blobs.PutFile(ctx, p.Object.Namespace, p.Object.UID, f, data)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (r *Contents) listArtifacts(ctx context.Context, t *v1alpha1.Task, respond rest.Responder) error {
	files, err := r.o.Blobs.Files(ctx, t.UID)
	if err != nil {
		return err
	}
	out := &v1alpha1.TaskArtifactList{Artifacts: []v1alpha1.TaskArtifact{}}
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Name, artifactBlob); ok {
			out.Artifacts = append(out.Artifacts, v1alpha1.TaskArtifact{
				Filename: name, ContentType: f.ContentType, Size: f.Size, CreatedAt: metav1.NewTime(f.CreatedAt),
			})
		}
	}
	respond.Object(http.StatusOK, out)
	return nil
}

// getArtifact sends a file as an attachment: a worker chose its type, and a browser must not open
// it as a page of this server.
func (r *Contents) getArtifact(w http.ResponseWriter, req *http.Request, p stored.Parent) error {
	f, data, ok, err := r.o.Blobs.File(req.Context(), p.Object.UID, artifactBlob+p.Path)
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewNotFound(v1alpha1.Resource("tasks/artifacts"), p.Path)
	}
	send(w, req, f, data, p.Path)
	return nil
}

// send sends a file as an attachment.
func send(w http.ResponseWriter, req *http.Request, f blob.File, data []byte, filename string) {
	h := w.Header()
	h.Set("Content-Type", f.ContentType)
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filename}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox")
	if _, err := w.Write(data); err != nil {
		klog.FromContext(req.Context()).V(2).Info("The client did not read a file to its end", "err", err)
	}
}

// checkFilename requires a single path element that is safe to store in a directory.
func checkFilename(name string) error {
	switch {
	case name == "":
		return apierrors.NewBadRequest("filename: is required")
	case len(name) > maxFilename:
		return apierrors.NewBadRequest(fmt.Sprintf("filename: must be at most %d bytes", maxFilename))
	case name == "." || name == ".." || strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl):
		return apierrors.NewBadRequest("filename: must be one path element")
	}
	return nil
}

// contentType returns the type that the worker sent or, without one, the type that the file's name
// or content indicates.
func contentType(req *http.Request, name string, data []byte) string {
	const unknown = "application/octet-stream"
	if t, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err == nil && t != unknown {
		return t
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return http.DetectContentType(data)
}

// body reads content that a worker sends about its task. Call it before anything is written to w.
func (r *Contents) body(w http.ResponseWriter, req *http.Request, t *v1alpha1.Task) ([]byte, error) {
	if err := r.mayKeep(req.Context(), t); err != nil {
		return nil, err
	}
	return resource.ReadBody(w, req, MaxBytes)
}

func notFound(what string) error {
	return apierrors.NewNotFound(v1alpha1.Resource("tasks"), what)
}
