// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/version"
)

// earlierVersion is the newest version of the protocol with sessions.
const earlierVersion = "2025-11-25"

// maxDiscoveryTime bounds the first request of the newest version, which servers of earlier ones may leave without an answer.
const maxDiscoveryTime = 5 * time.Second

// called is the suggestion about a call that was carried out.
const called = "do not call it again for its result; go on without it"

const (
	// maxDiscovery is how many bytes the server may send until the tool is found.
	maxDiscovery = 2 << 20
	// maxResult is the size of the largest accepted result, in bytes; envelope is added to it on the wire.
	maxResult = 1 << 20
	envelope  = 64 << 10
	maxPages  = 8
	maxNames  = 1024
	// maxText is how much of an error's text the model is shown, in bytes.
	maxText = 2 << 10
)

// server is where a tool is, and how it is called.
type server struct {
	name     string
	url      *url.URL
	toolName string
	headers  map[string]string
	timeout  time.Duration
	options  Options
	hidden   redact.Known // the credential, which the server may repeat
	// earlier is set while the server is known to begin sessions by an earlier version of the protocol.
	earlier atomic.Bool
}

// conversation is one session with the server.
type conversation struct {
	*server
	ctx     context.Context //nolint:containedctx // that of the call, for all its requests
	session *sdk.ClientSession
	wire    *wire
}

// do connects, runs f and ends the session. If the server forgets the session meanwhile, which it says before it does
// anything, all of this is done once more. Its errors are *tool.Errors.
func (s *server) do(ctx context.Context, f func(*conversation) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	lost, err := s.converse(ctx, f)
	if lost {
		_, err = s.converse(ctx, f)
	}
	return err
}

// converse is one session. It reports whether the server forgot the session before f was done.
func (s *server) converse(ctx context.Context, f func(*conversation) error) (lost bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	w := newWire(ctx, stop, s)
	defer w.next.CloseIdleConnections()
	defer w.replies.Wait()
	defer stop(nil)
	session, err := s.connect(ctx, w)
	if err == nil {
		err = f(&conversation{s, ctx, session, w})
		if err != nil {
			err = s.explain(ctx, w, err)
		}
		// This asks the server to end the session, unless the time is over or the server broke a limit.
		_ = session.Close()
	} else {
		err = s.explain(ctx, w, err)
	}
	_, lost = w.ended()
	return lost && err != nil && ctx.Err() == nil, err
}

// connect begins a session. A server that has begun one by an earlier version is not asked for the newest one again.
func (s *server) connect(ctx context.Context, w *wire) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "platform", Version: version.Version()}, &sdk.ClientOptions{
		// The server may ask for nothing: neither for samples of the model nor for a person's input.
		Capabilities: &sdk.ClientCapabilities{}, MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	var o *sdk.ClientSessionOptions
	if s.earlier.Load() {
		o = &sdk.ClientSessionOptions{ProtocolVersion: earlierVersion}
	}
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.url.String(), HTTPClient: &http.Client{Transport: w, CheckRedirect: w.redirect},
		MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxDiscovery,
	}, o)
	s.earlier.Store(err == nil && session.InitializeResult().ProtocolVersion <= earlierVersion)
	return session, err
}

// discovery is how long the server may take for the first request of the newest version, before a session is begun as
// earlier versions do.
func (s *server) discovery() time.Duration { return min(maxDiscoveryTime, s.timeout/4) }

// find returns the schema of the tool, as the server offers it.
func (c *conversation) find(name string) (any, error) {
	var found *sdk.Tool
	names := 0
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := c.session.ListTools(c.ctx, params)
		if err != nil {
			return nil, err
		}
		if names += len(page.Tools); names > maxNames {
			return nil, tool.Errorf(tool.TypeLimitReached, "the server of %s offers more than %d tools", c.name, maxNames)
		}
		for _, t := range page.Tools {
			if t.Name != name {
				continue
			}
			if found != nil {
				return nil, tool.Errorf(tool.TypeToolChanged, "the server of %s offers two tools with the name %s", c.name, name)
			}
			found = t
		}
		if page.NextCursor != "" {
			params.Cursor = page.NextCursor
			continue
		}
		if found == nil {
			return nil, tool.Errorf(tool.TypeToolChanged, "the server of %s does not offer a tool with the name %s; see spec.mcp.remote.toolName", c.name, name)
		}
		return decode(fromText(found.InputSchema)), nil
	}
	return nil, tool.Errorf(tool.TypeLimitReached, "the server of %s offers its tools in more than %d pages", c.name, maxPages)
}

// call calls the tool.
func (c *conversation) call(name string, arguments json.RawMessage) (*Response, error) {
	c.wire.calling(maxResult+envelope, "the result of "+c.name+" is larger than 1 MiB")
	res, err := c.session.CallTool(c.ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return nil, c.unanswered(err)
	}
	if res.NeedsInput() {
		return nil, tool.Errorf(tool.TypeUnavailable, "%s asks for more input during the call, which is not supported", c.name)
	}
	shown, readable := contentOf(res)
	structured := fromText(res.StructuredContent)
	switch {
	case res.IsError:
		return nil, tool.Errorf(tool.TypeUnavailable, "%s reports that the call failed%s", c.name, c.failure(shown, structured)).
			Suggest("call it again only if you can correct what it reports")
	case !readable:
		return nil, tool.Errorf(tool.TypeUnavailable, "%s was called, but its result cannot be shown: its content is no list", c.name).Suggest(called)
	case !shown.text && len(structured) == 0 && shown.leftOut != "":
		return nil, tool.Errorf(tool.TypeUnavailable, "%s was called, but its result cannot be shown: it is %s, and only text and structured content can be shown", c.name, shown.leftOut).Suggest(called)
	}
	return c.response(shown, structured)
}

// failure returns what a failed call says, after a colon.
func (c *conversation) failure(shown content, structured json.RawMessage) string {
	said := c.shorten(shown.joined)
	if said == "" && len(structured) > 0 {
		said = c.shorten(string(structured))
	}
	if shown.leftOut != "" {
		said = strings.TrimSpace(said + " (left out: " + shown.leftOut + ")")
	}
	if said == "" {
		return ""
	}
	return ": " + said
}

// unanswered returns the error of a call without an answer. It may have been carried out, unless the server refused it, or did not get
// it, or its answer broke a limit.
func (c *conversation) unanswered(err error) error {
	last, _ := c.wire.ended()
	_, limit := errors.AsType[*tool.Error](context.Cause(c.ctx))
	_, refused := errors.AsType[*jsonrpc.Error](err)
	switch {
	case limit, !c.wire.sent.Load():
		return err
	case errors.Is(context.Cause(c.ctx), context.DeadlineExceeded):
		return tool.OutcomeUnknown(c.name, "its server took longer than "+c.timeout.String())
	case c.ctx.Err() != nil:
		return tool.OutcomeUnknown(c.name, "the run was stopped")
	case last.broken != nil:
		return tool.OutcomeUnknown(c.name, "the answer did not arrive: "+c.shorten(innermost(last.broken).Error()))
	case refused, last.status >= http.StatusMultipleChoices:
		return err
	}
	return tool.OutcomeUnknown(c.name, "the answer did not arrive: "+c.shorten(innermost(err).Error()))
}

func (c *conversation) response(shown content, structured json.RawMessage) (*Response, error) {
	out := &Response{Text: shown.joined, Structured: structured}
	if len(structured) > 0 && canonical.Equal([]byte(out.Text), structured) {
		out.Text = ""
	}
	if shown.leftOut != "" {
		out.LeftOut = shown.leftOut + "; only text and structured content can be shown"
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxResult {
		return nil, tool.Errorf(tool.TypeLimitReached, "the result of %s is larger than 1 MiB", c.name).Suggest("ask for less")
	}
	if clean := c.hidden.JSON(string(raw)); clean != string(raw) {
		// A server may repeat what it was sent.
		out = &Response{}
		if err := json.Unmarshal([]byte(clean), out); err != nil {
			return nil, tool.Errorf(tool.TypeUnavailable, "the result of %s repeats the credential and cannot be shown", c.name).Suggest(called)
		}
	}
	return out, nil
}

// explain makes an error for the model. What the wire refused comes first, because the protocol's own error only says
// that the connection broke.
func (s *server) explain(ctx context.Context, w *wire, err error) error {
	var typed *tool.Error
	var rpc *jsonrpc.Error
	var breach protocolError
	last, _ := w.ended()
	said := s.shorten(last.said)
	if said != "" {
		said = ": " + said
	}
	switch cause := context.Cause(ctx); {
	case errors.As(err, &typed), errors.As(cause, &typed):
		return typed
	case errors.Is(cause, context.DeadlineExceeded):
		return tool.Errorf(tool.TypeTimeout, "the server of %s took longer than %s", s.name, s.timeout)
	case ctx.Err() != nil:
		return tool.Errorf(tool.TypeCancelled, "the run was stopped")
	case errors.Is(last.broken, egress.ErrRefused):
		return tool.Errorf(tool.TypePermissionDenied,
			"the address of the server of %s is not allowed: it is private, local or reserved; the operator can allow it with --web-fetch-allow", s.name)
	case errors.As(last.broken, &breach):
		return tool.Errorf(tool.TypeUnavailable, "the server of %s cannot be used: %s", s.name, s.shorten(string(breach)))
	case last.broken != nil:
		return tool.Errorf(tool.TypeUnavailable, "the server of %s cannot be reached: %s", s.name, s.shorten(innermost(last.broken).Error()))
	case last.status == http.StatusUnauthorized, last.status == http.StatusForbidden:
		return tool.Errorf(tool.TypePermissionDenied, "the server of %s answered with status %d%s", s.name, last.status, said)
	case last.status >= http.StatusMultipleChoices:
		return tool.Errorf(tool.TypeUnavailable, "the server of %s answered with status %d%s", s.name, last.status, said)
	case errors.As(err, &rpc):
		return tool.Errorf(tool.TypeUnavailable, "the server of %s answered with an error: %s", s.name, s.shorten(textOf(rpc)))
	}
	return tool.Errorf(tool.TypeUnavailable, "the server of %s cannot be used: %s", s.name, s.shorten(innermost(err).Error()))
}

// innermost returns the cause without what each layer put before it, such as addresses.
func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
