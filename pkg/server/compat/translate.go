// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/anthropic"
	"github.com/platform-ai/platform/pkg/llm/members"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
)

// translated is a request to a Provider that does not get it as the client wrote it. Package members says what is carried, what is
// left out and what is refused, so that nothing is lost silently. The same holds for answers, except for what means nothing to the
// client: thinking, for which it could only give hints, and members that describe the answer or are new. An answer with content that
// an llm.Response has no place for (Lost) is refused with 502, or its stream ends with an error.
//
// The conversation reaches the vendor as the client wrote it (llm.Request.Verbatim). What the messages protocol does not allow, such
// as a conversation that the assistant begins, is changed for runs, and refused here (fits). A hint that only some models take, such
// as an effort, is learned from a refusal that names it, like other quirks of a server: the model is asked again without it.
type translated struct {
	llm.Request

	// in is the request that was read.
	in *incoming
	// left are the members that are left out.
	left []string
	// stops end the answer where one of them would appear in its text.
	stops []string
	// usage is set if the client asked for a report of its usage in the stream.
	usage bool
	// spaces are the tools of namespaces, by the names that the model knows them by.
	spaces map[string]spaced
}

// translate reads the request for a Provider of a protocol that does not get it as it is.
func (in *incoming) translate(to llm.Protocol) (*translated, error) {
	from := map[operation]func(*incoming) (*translated, error){opChat: fromChat, opResponses: fromResponses, opMessages: fromMessages}[in.op]
	if from == nil {
		return nil, invalid("model", "model: %s needs a Provider of the same protocol", in.op)
	}
	if !utf8.Valid(in.data) || halved(in.data) {
		return nil, untranslatable("", "text that is not Unicode")
	}
	api := map[operation]members.API{opChat: members.Chat, opResponses: members.Responses, opMessages: members.Messages}[in.op]
	carried, err := members.Reduce(api, in.data, to)
	if refused, ok := members.IsRefused(err); ok {
		return nil, problem{code: http.StatusBadRequest, param: refused.Member(), message: refused.Error() + " " + toOtherProtocol}
	}
	if err != nil {
		return nil, invalid("", "%v", err)
	}
	t, err := from(&incoming{object: &object{data: carried.Body}, op: in.op, usage: in.usage})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(carried.Left, func(path string) bool { return strings.HasPrefix(path, "tools[") && strings.HasSuffix(path, "]") }); i >= 0 && len(t.Tools) == 0 {
		return nil, untranslatable("tools", "nothing but tools of a vendor, such as "+carried.Left[i]+",")
	}
	if !slices.ContainsFunc(t.Messages, func(m llm.Message) bool { return !silent(&m) }) {
		return nil, untranslatable(in.op.conversation(), "a conversation in which nobody says anything")
	}
	t.in, t.left = in, carried.Left
	return t, t.formFits(to)
}

// formFits refuses a form of the answer that a protocol lacks.
func (t *translated) formFits(p llm.Protocol) error {
	if t.Format == nil || p != llm.ProtocolAnthropic {
		return nil
	}
	if _, ok := anthropic.SchemaOf(t.Format); ok {
		return nil
	}
	return untranslatable(t.in.op.format(), "this value")
}

// strict reads JSON into a struct. It refuses members that the struct lacks, names that differ in case, and members that occur
// twice, because a reading of any of them would lose something.
func strict(data []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(data, into)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return untranslatable(kind.Field, "this form")
	}
	if err != nil {
		return invalid("", "the body cannot be read: %v", err)
	}
	if len(wrong) == 0 {
		return nil
	}
	field, ok := errors.AsType[kjson.FieldError](wrong[0])
	if !ok || strings.HasPrefix(field.Error(), "duplicate") {
		return untranslatable("", "a member that occurs twice")
	}
	return untranslatable(field.FieldPath(), "")
}

// halved reports whether valid JSON has an escape for one half of a character.
func halved(data []byte) bool {
	unit := func(at int) rune {
		if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
		return rune(n)
	}
	for i := bytes.IndexByte(data, '\\'); i >= 0 && i < len(data); {
		width := 2
		if first := unit(i); utf16.IsSurrogate(first) {
			if utf16.DecodeRune(first, unit(i+6)) == unicode.ReplacementChar {
				return true
			}
			width = 12
		}
		next := bytes.IndexByte(data[i+width:], '\\')
		if next < 0 {
			return false
		}
		i += width + next
	}
	return false
}

// untranslatable refuses what the protocol of the Provider cannot carry.
func untranslatable(param, what string) problem {
	if what != "" {
		what = ": " + what
	}
	if param == "" {
		what = strings.TrimPrefix(what, ": ")
	}
	return invalid(param, "%s%s %s", param, what, toOtherProtocol)
}

// toOtherProtocol is why something is refused, and what to do.
const toOtherProtocol = "cannot be carried over to a Provider of another protocol; leave it out, or use a Provider of the same protocol"

// callID matches the ids of calls that the messages protocol allows.
var callID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// fits refuses a conversation that the protocol of a Provider does not allow. Nobody but the client may change it.
func (t *translated) fits(p llm.Protocol) error {
	if p != llm.ProtocolAnthropic {
		return nil
	}
	param, begun := t.in.op.conversation(), false
	for i, m := range t.Messages {
		last := i == len(t.Messages)-1
		switch assistant := m.Role == llm.RoleAssistant; {
		case assistant && !begun && silent(&m): // which is left out
			continue
		case assistant && !begun:
			return untranslatable(param, "a conversation that begins with the assistant")
		case assistant && m.Text != "" && strings.TrimSpace(m.Text) == "":
			return untranslatable(param, "a text of nothing but white space")
		case assistant && last && strings.TrimRightFunc(m.Text, unicode.IsSpace) != m.Text:
			return untranslatable(param, "white space at the end of a conversation that ends with the assistant")
		case m.Role == llm.RoleTool && !callID.MatchString(m.ToolCallID):
			return wrongID(param, m.ToolCallID)
		}
		for _, c := range m.ToolCalls {
			if !callID.MatchString(c.ID) {
				return wrongID(param, c.ID)
			}
		}
		begun = begun || m.Role != llm.RoleSystem
	}
	return nil
}

func wrongID(param, id string) problem {
	return untranslatable(param, fmt.Sprintf("the id %.64q of a tool call, which has other characters than letters, digits, - and _,", id))
}

// ask asks a Provider of another protocol.
func (a *attempt) ask() error {
	c := a.candidate
	req, err := a.in.translate(c.Protocol())
	if err != nil {
		return err
	}
	if err := req.fits(c.Protocol()); err != nil {
		return err
	}
	req.Verbatim, req.Whole = true, true
	model, err := c.LLM()
	if err != nil {
		return invalid("model", "model: %v", err)
	}
	if err := a.start(); err != nil {
		return err
	}
	req.Model = c.Model
	a.leftOut(req)
	out := a.writer(req)
	var stop stopper
	for _, one := range req.stops {
		// The vendor would not say which of them ended a message, and Anthropic refuses those of nothing but white swritetimeout.
		if a.in.op == opMessages || strings.TrimSpace(one) == "" {
			stop.sequences = append(stop.sequences, one)
		} else {
			req.Stop = append(req.Stop, one)
		}
	}
	resp, err := model.Model.Generate(a.ctx, req.Request, func(p llm.Part) { out.part(llm.Part{Text: stop.add(p.Text)}) })
	a.heard.response(&resp)
	a.tally.count.Report(resp.Usage)
	a.tally.count.Complete() // the client of the vendor leaves out what is not final
	a.failed = err != nil
	a.refusal = llm.Unused(err)
	a.end()
	if err != nil {
		p := ofModel(c, err)
		if !out.begun {
			return p
		}
		out.fail(p)
	} else if err := out.stopped(&resp, &stop); err != nil {
		if !out.begun {
			return err
		}
		p, _ := asProblem(err)
		out.fail(p)
	}
	a.release()
	return nil
}

// ofModel returns the problem that a failed request to a model becomes.
func ofModel(c models.Candidate, err error) problem {
	name := c.Provider.Name
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q failed", name), next: true}
	}
	p := problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q: %s", name, e.Message), next: true, form: formOf(e.Class, e.Status)}
	if e.RetryAfter > 0 {
		p.after = strconv.Itoa(int((e.RetryAfter + time.Second - 1) / time.Second))
	}
	usual := http.StatusBadGateway // where the vendor gave no status
	switch e.Class {
	case llm.ClassAuth:
		p.message, p.key = fmt.Sprintf("Provider %q: its API key was refused", name), true
		return p
	case llm.ClassRateLimited, llm.ClassQuota:
		usual = http.StatusTooManyRequests
	case llm.ClassContextTooLong:
		usual, p.next = http.StatusBadRequest, false
	case llm.ClassInvalidRequest:
		usual, p.next = http.StatusBadRequest, e.Status == http.StatusNotFound
	case llm.ClassServer:
	case llm.ClassUnreachable, llm.ClassCutStream, llm.ClassMalformed, llm.ClassCanceled:
		return p
	}
	switch {
	case e.Accepted: // the vendor's status was a success
	case e.Status >= http.StatusBadRequest:
		p.code = e.Status
	default:
		p.code = usual
	}
	return p
}

// form writes the answer of a model in the form of a protocol.
type form interface {
	// begin, text and end return events of a stream. begin says whether a text follows, and end also has the calls of tools.
	begin(text bool) []byte
	text(s string) []byte
	end(r *llm.Response, calls []llm.ToolCall, stop string) []byte
	// whole returns an answer that is not a stream.
	whole(r *llm.Response, stop string) ([]byte, error)
	// check returns why the protocol cannot carry an answer.
	check(r *llm.Response) error
	// stop returns the protocol's name of the reason why an answer ended; false if it has none.
	stop(r *llm.Response) (string, bool)
	// stoppedBy notes the sequence that ended the answer.
	stoppedBy(sequence string)
	// failed returns the event with which a stream ends that failed after it had begun.
	failed(p problem) []byte
}

// speaker writes the answer of a model to the client.
type speaker struct {
	*attempt

	form   form
	stream bool
	begun  bool
	gone   bool // the client has left
	to     *writetimeout.Writer
}

func (a *attempt) writer(req *translated) *speaker {
	s := &speaker{attempt: a, stream: a.in.stream, to: a.paced()}
	switch a.in.op {
	case opMessages:
		s.form = newMessageForm(a.candidate.Model)
	case opResponses:
		s.form = newResponseForm(a.candidate.Model, a.h.o.Clock.Now(), req)
	default:
		s.form = newChatForm(a.candidate.Model, a.h.o.Clock.Now(), req.usage)
	}
	return s
}

// part sends a piece of a streamed answer. Calls of tools are sent at the end, when their arguments are complete.
func (s *speaker) part(p llm.Part) {
	if s.stream && p.Text != "" {
		s.open(true)
		s.send(s.form.text(p.Text))
	}
}

// open begins the stream. text is set if a text follows, or may.
func (s *speaker) open(text bool) {
	if s.begun {
		return
	}
	s.begun = true
	s.w.Header().Set("Content-Type", eventStream)
	s.w.WriteHeader(http.StatusOK)
	s.send(s.form.begin(text))
}

// send writes to a client that has not left. The answer is read on for a while after that, so that its usage is known.
func (s *speaker) send(b []byte) {
	if s.gone {
		return
	}
	_, err := s.to.Write(b)
	if err == nil && s.stream {
		err = s.to.FlushError()
	}
	if err == nil {
		return
	}
	s.gone = true
	if s.cancel != nil { // the client's context may not have ended
		s.left()
	}
}

// stopped ends an answer whose parts were sent up to one of the client's sequences.
func (s *speaker) stopped(r *llm.Response, stop *stopper) error {
	s.part(llm.Part{Text: stop.rest()})
	var hit string
	if r.Text, hit = cutAt(r.Text, stop.sequences); hit != "" { // the vendor was not told to stop, so nothing that follows is part of the answer
		s.form.stoppedBy(hit)
		r.ToolCalls, r.Refused, r.StopReason = nil, false, stopSequence
	}
	return s.finish(r)
}

func (s *speaker) finish(r *llm.Response) error {
	if len(r.Lost) > 0 {
		return problem{code: http.StatusBadGateway, message: fmt.Sprintf(
			"Provider %q answered with what this protocol cannot carry: %s; use a Provider of the same protocol", s.candidate.Provider.Name, strings.Join(r.Lost, ", "),
		), next: true}
	}
	stop, ok := s.form.stop(r)
	if !ok {
		return problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q ended its answer for a reason that this protocol lacks: %q", s.candidate.Provider.Name, r.StopReason), next: true}
	}
	failed := func(err error) error {
		return problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q: %v", s.candidate.Provider.Name, err), next: true}
	}
	if err := s.form.check(r); err != nil {
		return failed(err)
	}
	if s.stream {
		s.open(r.Text != "" || len(r.ToolCalls) == 0)
		s.send(s.form.end(r, r.ToolCalls, stop))
		return nil
	}
	data, err := s.form.whole(r, stop)
	if err != nil {
		return failed(err)
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	s.w.WriteHeader(http.StatusOK)
	s.send(data)
	return nil
}

// fail ends a stream with an error.
func (s *speaker) fail(p problem) { s.send(s.form.failed(p)) }

// encoded returns the JSON of a value of texts, numbers and valid JSON, which can always be encoded.
func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// sse returns an event. The name may be empty.
func sse(name string, data any) []byte {
	var out []byte
	if name != "" {
		out = append(out, "event: "+name+"\n"...)
	}
	return append(append(append(out, "data: "...), encoded(data)...), "\n\n"...)
}
