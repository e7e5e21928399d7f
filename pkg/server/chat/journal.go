// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/turn"
)

// maxFrames bounds the frames of one background turn, in bytes.
const maxFrames = 16 << 20

// record is a turn as it is stored when it begins, and again when it ends.
type record struct {
	ID        string            `json:"id"`
	Namespace string            `json:"namespace"`
	Session   string            `json:"session"`
	Spec      v1alpha1.ChatSpec `json:"spec"`
	Began     time.Time         `json:"began"`
	// Caller and First are those of background turns: who asked, and the number of the first frame. No credential is
	// stored; what the caller may do is asked anew at each operation.
	Caller *authenticationv1.UserInfo `json:"caller,omitempty"`
	First  int64                      `json:"first,omitempty"`
	// End is set once the turn is over and before its messages are in the session.
	End *ending `json:"end,omitempty"`
}

// ending is how a turn ended.
type ending struct {
	Status  *v1alpha1.ChatStatus `json:"status"`
	Failure *Failure             `json:"failure,omitempty"`
}

// step is a stored step of the loop.
type step struct {
	agentloop.Step
	// Created is how many tasks the turn had created, and Frame the number of its last frame.
	Created int32
	Frame   int64
	// Withheld are the ids of calls whose arguments were stored without their secrets, and cannot be made again.
	Withheld []string `json:",omitempty"`
}

// asked describes a caller without credentials. A verified identity is kept whole, even if a claim looks like a secret, because
// it limits what the caller may do.
func asked(by user.Info) *authenticationv1.UserInfo {
	out := &authenticationv1.UserInfo{Username: by.GetName(), UID: by.GetUID(), Groups: by.GetGroups()}
	for key, values := range by.GetExtra() {
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool {
			_, secret := redact.Text(v)
			return secret && !external.OfIdentity(key)
		})
		if len(values) > 0 {
			if out.Extra == nil {
				out.Extra = map[string]authenticationv1.ExtraValue{}
			}
			out.Extra[key] = values
		}
	}
	return out
}

// who returns the caller of a stored turn.
func (r *record) who() user.Info {
	extra := map[string][]string{}
	for key, values := range r.Caller.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: r.Caller.Username, UID: r.Caller.UID, Groups: r.Caller.Groups, Extra: extra}
}

// journal stores a turn while it runs. Each answer with calls and each result is stored, without secrets, before the loop goes on.
// The frames of a background turn are stored, with the step that they belong to, before any client sees them, so all clients read
// the same bytes. An ordinary turn has no live, and no frames are stored.
type journal struct {
	store  *turn.Store
	uid    types.UID // of the session
	record record
	past   []step // that an earlier process stored
	number int64  // of the next step
	live   *live
	fail   func(error)  // ends the turn
	rest   []turn.Frame // the last frames, which are shown when the turn is over

	writing sync.Mutex // orders writes

	mu      sync.Mutex
	pending []Frame
	bytes   int
	kick    chan struct{} // has room for one
	closed  chan struct{}
	writer  sync.WaitGroup // the goroutine of write
}

// begin stores that the turn begins.
func (j *journal) begin(ctx context.Context) error {
	raw, err := json.Marshal(j.record)
	if err != nil {
		return fmt.Errorf("encode a turn: %w", err)
	}
	first, err := j.store.Begin(ctx, j.uid, raw, j.live != nil)
	if err != nil {
		return resource.StatusError(v1alpha1.Resource("chats"), "", err)
	}
	if j.live != nil {
		j.record.First = first
		j.live.begin(first, nil)
	}
	return nil
}

// write starts to store frames as they occur, until close.
func (j *journal) write() {
	j.kick, j.closed = make(chan struct{}, 1), make(chan struct{})
	j.writer.Go(func() { // ends with close
		for {
			select {
			case <-j.kick:
				if err := j.flush(context.Background(), nil); err != nil { //nolint:forbidigo // frames are stored also while the turn is being cancelled
					j.fail(&storageError{err})
				}
			case <-j.closed:
				return
			}
		}
	})
}

// close ends what write began, and returns when nothing more is stored or shown. A turn that the server interrupts may have
// frames that are not stored.
func (j *journal) close() {
	if j.closed != nil {
		close(j.closed)
		j.writer.Wait()
	}
}

// frame adds a frame, which is stored and shown a moment later. Texts that wait together become one frame.
func (j *journal) frame(f Frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	size := len(f.Content)
	if f.ToolCall != nil && f.ToolCall.Args != nil {
		size += len(f.ToolCall.Args.Raw)
	}
	if f.ToolCall != nil && f.ToolCall.Result != nil {
		size += len(f.ToolCall.Result.Raw)
	}
	if j.bytes += size; j.bytes > maxFrames {
		j.fail(errTooMuch)
		if f.Type == FrameMessage {
			return
		}
	}
	last := len(j.pending) - 1
	if last >= 0 && f.Type == FrameMessage && !f.Restart && j.pending[last].Type == FrameMessage {
		j.pending[last].Content += f.Content
	} else {
		j.pending = append(j.pending, f)
	}
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// flush stores the frames that wait, those that are given, and a change, at once. Then it shows the frames. change may
// be nil; it receives the number of the last of these frames.
func (j *journal) flush(ctx context.Context, change func(last int64) (turn.Change, error), more ...Frame) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	waited := j.pending
	j.pending = nil
	j.mu.Unlock()
	err := j.apply(ctx, change, append(slices.Clip(waited), more...))
	if err != nil {
		j.mu.Lock()
		j.pending = append(waited, j.pending...)
		j.mu.Unlock()
	}
	return err
}

func (j *journal) apply(ctx context.Context, change func(last int64) (turn.Change, error), frames []Frame) error {
	var all []turn.Frame
	var last int64
	if j.live != nil {
		last = j.live.last()
		for _, f := range frames {
			data, err := json.Marshal(f.Envelope)
			if err != nil {
				return fmt.Errorf("encode a frame: %w", err)
			}
			last++
			all = append(all, turn.Frame{Seq: last, Type: f.Type, Data: data})
		}
	}
	var c turn.Change
	switch {
	case change != nil:
		var err error
		if c, err = change(last); err != nil {
			return err
		}
	case len(all) == 0:
		return nil
	}
	c.First, c.Last, c.Frames = j.record.First, last, all
	if err := j.store.Apply(ctx, j.uid, c); err != nil {
		return err
	}
	switch {
	case j.live == nil:
	case c.End:
		j.rest = all
	default:
		j.live.show(all)
	}
	return nil
}

// step stores a step of the loop, with frames that belong to it.
func (j *journal) step(ctx context.Context, s step, frames ...Frame) error {
	err := j.flush(ctx, func(last int64) (turn.Change, error) {
		s.Frame = last
		raw, err := json.Marshal(s)
		if err != nil {
			return turn.Change{}, fmt.Errorf("encode a step: %w", err)
		}
		return turn.Change{Step: raw, Number: j.number}, nil
	}, frames...)
	if err != nil {
		return &storageError{err}
	}
	j.number++
	return nil
}

// messages returns messages without secrets and without what only their vendor understands, and the ids of calls whose
// arguments held secrets.
func (c cleaner) messages(all []llm.Message) (out []llm.Message, withheld []string) {
	for _, m := range all {
		text := m.Text
		if m.Role == llm.RoleTool {
			text = c.json(text)
		} else {
			text = c.text(text)
		}
		kept := llm.Message{Role: m.Role, Text: text, ToolCallID: m.ToolCallID}
		for _, call := range m.ToolCalls {
			arguments, secret := c.arguments(call.Arguments)
			if secret {
				withheld = append(withheld, call.ID)
			}
			kept.ToolCalls = append(kept.ToolCalls, llm.ToolCall{ID: call.ID, Name: call.Name, Arguments: arguments})
		}
		out = append(out, kept)
	}
	return out, withheld
}

// ending stores how the turn ended, before its messages are added to the session.
func (j *journal) ending(ctx context.Context, e ending) error {
	j.record.End = &e
	return j.flush(ctx, func(int64) (turn.Change, error) {
		raw, err := json.Marshal(j.record)
		if err != nil {
			return turn.Change{}, fmt.Errorf("encode a turn: %w", err)
		}
		return turn.Change{Record: raw}, nil
	})
}

// end stores that the turn is over, with its last frames.
func (j *journal) end(ctx context.Context, frames ...Frame) error {
	return j.flush(ctx, func(int64) (turn.Change, error) { return turn.Change{End: true}, nil }, frames...)
}

// storageError is a failure to store a turn while it runs.
type storageError struct{ err error }

// Error names the cause.
func (e *storageError) Error() string { return "the turn could not be stored: " + e.err.Error() }

// Unwrap returns the cause.
func (e *storageError) Unwrap() error { return e.err }

// failure describes it to the user.
func (e *storageError) failure() *Failure {
	status := apierrors.APIStatus(nil)
	if errors.As(resource.StatusError(v1alpha1.Resource("chats"), "", e.err), &status) && status.Status().Code == http.StatusInsufficientStorage {
		return &Failure{Code: CodeStorage, Message: "the disk of the server is full, so the turn cannot be stored: " + status.Status().Message}
	}
	return &Failure{Code: CodeInternal, Message: "the turn could not be stored"}
}

// stored decodes the steps of a turn.
func stored(s *turn.Store, uid types.UID) ([]step, error) {
	raw, err := s.Steps(uid)
	if err != nil {
		return nil, err
	}
	steps := make([]step, len(raw))
	for i := range raw {
		if err := json.Unmarshal(raw[i], &steps[i]); err != nil {
			return nil, &unreadableError{fmt.Errorf("step %d: %w", i, err)}
		}
	}
	return steps, nil
}
