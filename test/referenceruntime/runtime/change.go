// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/workspace/delta"
)

// maxArchive is how long a workspace may be, in bytes.
const maxArchive = delta.MaxObjects + 16<<20

// operation is what is remembered about a request that was carried out.
type operation struct {
	digest string
	code   int
	answer []byte
	// prompt is the one whose stream is the answer, or nil.
	prompt *prompt
}

// change carries out a request that changes something, once all of its fences were checked.
func (r *Runtime) change(w http.ResponseWriter, req *http.Request, at route) error {
	f, err := harness.ReadFence(req.Header)
	if optional := r.broken("fence-optional") && req.Header.Get(harness.HeaderOperation) == ""; err != nil && !optional {
		return harness.Refuse(harness.BadRequest, "%v", err)
	}
	if f.Operation == "" { // only if the fence is optional
		f = harness.Fence{Instance: r.o.Instance, Epoch: r.epoch, Operation: harness.NewOperation(), Generation: f.Generation, Digest: f.Digest}
	}
	if f.Instance != r.o.Instance && !r.broken("any-instance") {
		e := harness.Refuse(harness.WrongInstance, "this is the instance %s", r.o.Instance)
		e.Instance = r.o.Instance
		return e
	}
	body, err := r.body(w, req, at)
	if err != nil {
		return err
	}
	if err := r.checkDigest(req, at, f, body); err != nil {
		return err
	}
	if at.kind != harness.PathBootstrap {
		if err := r.prove(req, f); err != nil {
			return err
		}
	}
	r.mu.Lock()
	o, err := r.once(f, at, body)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if o.prompt != nil {
		o.prompt.stream(w, req, 0)
		return nil
	}
	replyRaw(w, o.code, o.answer)
	return nil
}

// body reads a body up to its limit.
func (r *Runtime) body(w http.ResponseWriter, req *http.Request, at route) ([]byte, error) {
	most := *r.limits.MaxRequestBytes
	if at.kind == "workspace" || r.broken("any-length") {
		most = maxArchive
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, most))
	if err != nil {
		return nil, harness.Refuse(harness.TooLarge, "a body has at most %d bytes here", most)
	}
	return body, nil
}

func (r *Runtime) checkDigest(req *http.Request, at route, f harness.Fence, body []byte) (err error) {
	if r.broken("any-digest") {
		return nil
	}
	var want string
	switch {
	case at.kind == "workspace", r.broken("digest-of-bytes") && bytes.Contains(body, []byte("\n")):
		want, err = harness.DigestBytes(req.Method, req.URL.Path, f.Generation, f.Operation, sha256.Sum256(body))
	case len(body) == 0:
		want, err = harness.Digest(req.Method, req.URL.Path, f.Generation, f.Operation, nil)
	default:
		if r.broken("twice") {
			body = onceEach(body)
		}
		want, err = harness.Digest(req.Method, req.URL.Path, f.Generation, f.Operation, body)
	}
	if err != nil {
		return harness.Refuse(harness.BadRequest, "the body is not JSON, or has a key twice")
	}
	if optional := r.broken("fence-optional") && f.Digest == ""; want != f.Digest && !optional {
		return harness.Refuse(harness.DigestMismatch, "the digest is not that of the request")
	}
	return nil
}

// onceEach is how a lenient decoder reads an object.
func onceEach(body []byte) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return body
	}
	once, err := json.Marshal(all)
	if err != nil {
		return body
	}
	return once
}

// prove checks the capability.
func (r *Runtime) prove(req *http.Request, f harness.Fence) error {
	capability := req.Header.Get(harness.HeaderCapability)
	if capability == "" && r.broken("no-capability-needed") || capability != "" && r.broken("any-capability") {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken("early-epoch") {
		r.epoch = max(r.epoch, f.Epoch)
	}
	now := r.clock.Now()
	if expires, err := strconv.ParseInt(strings.Split(capability, ".")[0], 10, 64); err == nil && r.broken("expired-capability") {
		now = time.Unix(expires, 0)
	}
	if r.proofs[capability] && r.broken("reused-capability") {
		return nil
	}
	if err := f.Verify(r.key, capability, now); err != nil {
		return harness.Refuse(harness.CapabilityInvalid, "%v", err)
	}
	r.proofs[capability] = true
	return nil
}

// once carries out an operation unless that was done. The caller holds mu.
func (r *Runtime) once(f harness.Fence, at route, body []byte) (*operation, error) {
	scope := r.scopeOf(at.session)
	known := scope.operations[f.Operation]
	ignored := r.broken("stale-epoch") || known != nil && r.broken("stale-epoch-repeated")
	if f.Epoch < r.epoch && !ignored {
		e := harness.Refuse(harness.StaleEpoch, "epoch %d is over: the controller is at %d", f.Epoch, r.epoch)
		e.ControllerEpoch = r.epoch
		return nil, e
	}
	r.epoch = max(r.epoch, f.Epoch)
	again := r.broken("does-again") || r.broken("prompt-again") && known != nil && known.prompt != nil
	if known != nil && !again {
		if known.digest != f.Digest && !r.broken("changed-digest") {
			return nil, harness.Refuse(harness.OperationConflict, "the operation %s was another request", f.Operation)
		}
		return known, nil
	}
	if err := r.checkGeneration(f, at, scope); err != nil {
		return nil, err
	}
	o, err := r.carryOut(at, f, scope, body)
	if err != nil {
		return nil, err
	}
	o.digest = f.Digest
	scope.operations[f.Operation] = o
	return o, nil
}

func (r *Runtime) checkGeneration(f harness.Fence, at route, scope *scope) error {
	wrong := func(current uint64) error {
		e := harness.Refuse(harness.WrongGeneration, "the session is not of generation %d", f.Generation)
		e.Generation = current
		return e
	}
	switch {
	case at.session == "":
		if f.Generation != 0 {
			return harness.Refuse(harness.BadRequest, "%s must be 0 here", harness.HeaderGeneration)
		}
		return nil
	case f.Generation == 0:
		return harness.Refuse(harness.BadRequest, "%s must be at least 1 here", harness.HeaderGeneration)
	case scope.session != nil:
		if f.Generation != scope.session.generation && !r.broken("any-generation") {
			return wrong(scope.session.generation)
		}
		return nil
	case at.kind == "session" && (f.Generation > scope.generation || r.broken("forgets-generation")):
		return nil // a session that is created
	case scope.generation > 0:
		return wrong(0)
	}
	return harness.Refuse(harness.NotFound, "there is no session %s", at.session)
}

// decode decodes a body.
func (r *Runtime) decode(body []byte, into any) error {
	decode := harness.Decode
	if r.broken("unknown-members") || r.broken("twice") {
		decode = json.Unmarshal
	}
	if err := decode(body, into); err != nil {
		return harness.Refuse(harness.BadRequest, "the body: %v", err)
	}
	return nil
}

// done returns what is remembered about an operation with an answer.
func done(code int, answer any) (*operation, error) {
	raw, err := json.Marshal(answer)
	return &operation{code: code, answer: raw}, err
}

// carryOut does what a request asks for. The caller holds mu.
func (r *Runtime) carryOut(at route, f harness.Fence, scope *scope, body []byte) (*operation, error) {
	switch at.kind {
	case harness.PathDrain:
		return r.drain(body)
	case harness.PathBootstrap:
		return r.bootstrap(body)
	case "session":
		if len(body) > 0 {
			return r.create(at, f, scope, body)
		}
		return r.remove(at, scope)
	}
	s := scope.session
	if s == nil {
		return nil, harness.Refuse(harness.NotFound, "there is no session %s", at.session)
	}
	if s.fenced && at.kind != "workspace-deltas" {
		if at.kind == "lease" {
			return nil, harness.Refuse(harness.LeaseLost, "the lease has ended")
		}
		return nil, harness.Refuse(harness.SessionFenced, "a lease was lost in the session")
	}
	switch at.kind {
	case "workspace":
		return s.receive(body)
	case "prompts":
		return s.start(at.prompt, body)
	case "workspace-deltas":
		return s.delta(at.item, body)
	case "publication-finalization":
		return s.finalize(body)
	}
	p := s.prompt
	if p == nil || p.id != at.prompt {
		return nil, harness.Refuse(harness.NotFound, "there is no prompt %s", at.prompt)
	}
	switch at.kind {
	case "lease":
		return p.renew(body)
	case "cancel":
		return p.cancel(body)
	}
	return p.answer(at.item, body)
}

func (r *Runtime) drain(body []byte) (*operation, error) {
	var d harness.DrainSpec
	if err := r.decode(body, &d); err != nil {
		return nil, err
	}
	if !r.broken("drain-ignored") {
		r.draining = d.Drain || r.draining && r.broken("drain-for-ever")
	}
	if r.draining && r.broken("drain-kills") {
		for _, s := range r.scopes {
			if s.session != nil {
				s.session.stop()
			}
		}
	}
	state := harness.Serving
	if r.draining {
		state = harness.DrainingDown
	}
	return done(http.StatusOK, harness.Drained{Lifecycle: state, RunningPrompts: int64(r.running)})
}

func (r *Runtime) bootstrap(body []byte) (*operation, error) {
	var c harness.Credentials
	if err := r.decode(body, &c); err != nil {
		return nil, err
	}
	switch {
	case r.broken("takes-new-credentials"):
		return done(http.StatusOK, harness.Bootstrapped{Instance: r.o.Instance}) // and goes on with the old ones, for the checks that follow
	case r.token != "":
		return nil, harness.Refuse(harness.AlreadyBootstrapped, "the runtime has its credentials")
	case len(c.ControllerToken) < harness.MinSecret || len(c.OperationKey) < harness.MinSecret:
		return nil, harness.Refuse(harness.BadRequest, "controllerToken and operationKey must have at least %d bytes", harness.MinSecret)
	}
	r.token, r.key = c.ControllerToken, c.OperationKey
	return done(http.StatusOK, harness.Bootstrapped{Instance: r.o.Instance})
}

// hexOf returns the digest of a file.
func hexOf(file []byte) string {
	sum := sha256.Sum256(file)
	return "sha256:" + hex.EncodeToString(sum[:])
}
