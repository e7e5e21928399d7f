// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/acp"
)

// maxFile is how large a file may be that the agent reads through the worker, in bytes.
const maxFile = 8 << 20

// ReadTextFile implements acp.Handler.
func (t *Talk) ReadTextFile(ctx context.Context, path string) (text string, err error) {
	err = t.access(ctx, "read", acp.KindRead, path, map[string]any{"path": path}, func() error {
		text, err = t.roots.ReadText(path, maxFile)
		return err
	})
	return text, forAgent(err)
}

// WriteTextFile implements acp.Handler.
func (t *Talk) WriteTextFile(ctx context.Context, path, text string) error {
	return forAgent(t.access(ctx, "write", acp.KindEdit, path, map[string]any{"path": path, "content": text}, func() error {
		return t.roots.WriteText(path, text)
	}))
}

// access has the worker read or write a file for the agent. That belongs to a call that was permitted and names the file. Without such a
// call, it is a call by itself, about which the rules, the policies and people decide as if the agent had asked.
func (t *Talk) access(ctx context.Context, name, kind, path string, arguments map[string]any, do func() error) error {
	if t.covered(kind, path) {
		return do()
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	place := t.desk.approvals.Place()
	t.mu.Lock()
	t.accesses++
	k := t.newCall(&acp.Call{
		ID: fmt.Sprintf("worker-%s-%d", name, t.accesses), Title: name + " " + path, Tool: name, Kind: kind, Paths: []string{path},
		Arguments: raw, ArgumentBytes: len(raw),
	})
	k.deciding++
	t.mu.Unlock()
	once, why := t.settle(ctx, k, acp.Request{Call: k.Call, Once: true}, place)
	if why == nil {
		err = do()
	} else {
		t.Log.Line("%s %s: not permitted: %s", name, path, why.Message)
		err = tool.Errorf(why.Type, "%s %s: not permitted: %s", name, path, reason(why))
	}
	if once && k.begun { // calls that people approve have events of their own
		failure := tool.ErrorType("")
		if err != nil {
			failure = tool.TypeUnavailable
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.end(k, failure, map[string]any{})
	}
	return err
}

// covered reports whether a call that is being made was permitted and named the file when the agent asked. A call covers a change of a
// file only if it is of kind edit, and only once if people approved it.
func (t *Talk) covered(kind, path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	path = t.absolute(path)
	for _, k := range t.open {
		switch {
		case k.permitted == nil, kind == acp.KindEdit && k.permitted.Kind != acp.KindEdit, !t.concerns(k.permitted, path):
		case kind != acp.KindEdit || k.approvalID == "":
			return true
		case !k.written[path]:
			k.written[path] = true
			return true
		}
	}
	return false
}

// concerns reports whether a call names a file: in its locations, its changes, or as an argument.
func (t *Talk) concerns(c *acp.Call, path string) bool {
	for _, p := range c.Paths {
		if t.absolute(p) == path {
			return true
		}
	}
	for _, d := range c.Diffs {
		if t.absolute(d.Path) == path {
			return true
		}
	}
	var arguments map[string]json.RawMessage
	if json.Unmarshal(c.Arguments, &arguments) != nil {
		return false
	}
	for _, raw := range arguments {
		var p string
		if json.Unmarshal(raw, &p) == nil && t.absolute(p) == path {
			return true
		}
	}
	return false
}

func (t *Talk) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.WorkDir, path)
	}
	return filepath.Clean(path)
}

// forAgent returns the error of a file for the agent.
func forAgent(err error) error {
	failed, ok := errors.AsType[*tool.Error](err)
	switch {
	case err == nil:
		return nil
	case ok && failed.Type == tool.TypeNotFound:
		return acp.NotFound(failed.Message)
	case ok && failed.Type != tool.TypeUnavailable:
		return acp.InvalidParams(failed.Message)
	}
	return err
}
