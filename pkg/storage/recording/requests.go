// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// Requests of chats and of the vendors' APIs come without numbers: a client says the whole conversation each time. So parts are found by
// their digests, and a conversation by the digest of its last message and of the conversation before, which is stored once:
//
//	a namespace/day 0 e id         -> JSON: a request, by the ID of its usage; see asked
//	a namespace/day 0 c digest(32) -> digest(32) digest(32): a conversation: the one before (zero for none), and its last part
//	a namespace/day 0 p digest(32) -> JSON: a part, v1alpha1.RecordedPart
//	a namespace/day 0 h            -> held(8): bytes that are kept of the day
//
// The day is the one in which the request began, in days since 1970. A day is removed as a whole, so nobody counts who refers to what, and
// a conversation that goes on over midnight is stored once for each day.
const requests owned.Space = 'a'

const kindConversation = 'c'

// digest is a SHA-256; the zero value is no part, and the conversation before the first message.
type digest [sha256.Size]byte

// asked is the row of a request.
type asked struct {
	Messages     int                          `json:"messages"`
	Conversation []byte                       `json:"conversation,omitempty"` // a digest, as the others
	Tools        []byte                       `json:"tools,omitempty"`
	Parameters   *v1alpha1.RecordedParameters `json:"parameters,omitempty"`
	Answer       []byte                       `json:"answer,omitempty"`
}

// Request is a model request of a chat or of a vendor's API, as it was said. ID is the one of its usage, and At when it began.
type Request struct {
	Namespace, ID string
	At            time.Time
	Mode          v1alpha1.RecordingMode
	Conversation  []v1alpha1.RecordedMessage
	Tools         []v1alpha1.RecordedTool
	Parameters    *v1alpha1.RecordedParameters
	// Answer is nil if none came.
	Answer *v1alpha1.RecordedMessage
}

// dayOf returns the owner of the rows of a day.
func dayOf(namespace string, at time.Time) types.UID {
	return types.UID(namespace + "/" + strconv.FormatInt(at.Unix()/secondsOfDay, 10))
}

const secondsOfDay = 24 * 60 * 60

// maxCommit is about how many bytes of a request are stored in one commit, so that others wait for no long one.
const maxCommit = 1 << 20

// KeepRequest stores a request after secrets were removed. What has no room within the limit of the namespace is kept as its size and
// digest, as parts of tasks are. A long request is several commits, the last of which makes it visible.
func (s *Store) KeepRequest(r *Request) error {
	if owned.Bad(r.Namespace) || owned.Bad(r.ID) {
		return fmt.Errorf("a request without a namespace or an ID: %q, %q", r.Namespace, r.ID)
	}
	k := &keeping{s: s, ns: r.Namespace, day: dayOf(r.Namespace, r.At)}
	rows, err := k.encode(r)
	if err != nil {
		return err
	}
	size := 0
	for _, row := range rows {
		k.rows = append(k.rows, row)
		if size += len(row.val); size > maxCommit {
			if err := s.engine.Commit(k); err != nil {
				return err
			}
			k.rows, size = nil, 0
		}
	}
	return s.engine.Commit(k)
}

// keeping is a commit that stores rows of a request.
type keeping struct {
	s    *Store
	ns   string
	day  types.UID
	rows []requestRow
}

// requestRow is a row that may be new. short is what is stored in place of a part for which there is no room; nil for what is no part.
type requestRow struct{ key, val, short []byte }

// encode returns the rows that are not known yet: parts, conversations, and the request itself.
func (k *keeping) encode(r *Request) ([]requestRow, error) {
	var seen redact.Seen
	var parts, conversations []requestRow
	var failed error
	part := func(p *v1alpha1.RecordedPart) digest {
		full, short, err := encode(p.DeepCopy(), r.Mode, &seen)
		failed = errors.Join(failed, err)
		d := digest(sha256.Sum256(full))
		if key := requests.Key(k.day, append([]byte{kindPart}, d[:]...)...); !k.known(key, &failed) {
			parts = append(parts, requestRow{key, full, short})
		}
		return d
	}
	row := asked{Messages: min(len(r.Conversation), maxConversation)}
	var before digest
	for i := range r.Conversation[:row.Messages] {
		last := part(&v1alpha1.RecordedPart{Message: &r.Conversation[i]})
		val := slices.Concat(before[:], last[:])
		before = sha256.Sum256(val)
		if key := requests.Key(k.day, append([]byte{kindConversation}, before[:]...)...); !k.known(key, &failed) {
			conversations = append(conversations, requestRow{key: key, val: val})
		}
	}
	if row.Messages > 0 {
		row.Conversation = before[:]
	}
	if len(r.Tools) > 0 {
		d := part(&v1alpha1.RecordedPart{Tools: r.Tools})
		row.Tools = d[:]
	}
	if r.Answer != nil {
		d := part(&v1alpha1.RecordedPart{Message: r.Answer})
		row.Answer = d[:]
	}
	row.Parameters = cleanParameters(r.Parameters, &seen)
	raw, err := json.Marshal(row)
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	return append(append(parts, conversations...), requestRow{key: requests.Key(k.day, append([]byte{kindEntry}, r.ID...)...), val: raw}), nil
}

// known reports whether a row is stored, or being stored. One that is stored twice is the same, and only counted twice.
func (k *keeping) known(key []byte, failed *error) bool {
	if _, is := k.s.recent.Get(string(key)); is {
		return true
	}
	_, is, err := k.s.engine.Get(key)
	*failed = errors.Join(*failed, err)
	return is
}

// Need is Grow: on a full disk, nothing is recorded.
func (*keeping) Need() engine.Need { return engine.Grow }

// Publish shows nothing: nobody watches recordings.
func (*keeping) Publish() {}

// Sequence writes the rows as far as the limit allows.
func (k *keeping) Sequence(b engine.Batch) error {
	all, err := k.s.totals.Held(k.ns)
	if err == nil {
		_, err = k.s.days.Held(string(k.day))
	}
	if err != nil {
		return err
	}
	grown := int64(0)
	fits := func(val []byte, above int64) bool {
		return !over(k.s.limits.Namespace, above, all+grown+int64(len(val))+rowCost)
	}
	for _, r := range k.rows {
		val := r.val
		switch {
		case r.short == nil && fits(val, forShort), r.short != nil && fits(val, 0):
		case r.short != nil && fits(r.short, forShort):
			val = r.short
		default:
			continue
		}
		grown += int64(len(val)) + rowCost
		err = errors.Join(err, b.Set(r.key, val))
		k.s.recent.Add(string(r.key), nil)
	}
	return errors.Join(err, k.s.totals.Add(b, k.ns, grown), k.s.days.Add(b, string(k.day), grown))
}

// Request returns what is recorded of a request by the ID of its usage and the time when it began; nil if nothing is.
func (s *Store) Request(namespace, id string, at time.Time) (*v1alpha1.RequestRecording, error) {
	if owned.Bad(namespace) || owned.Bad(id) {
		return nil, nil //nolint:nilnil // as documented
	}
	day := dayOf(namespace, at)
	key := requests.Key(day, append([]byte{kindEntry}, id...)...)
	raw, ok, err := s.engine.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	var row asked
	if json.Unmarshal(raw, &row) != nil {
		return nil, &CorruptError{key}
	}
	out := &v1alpha1.RequestRecording{Parameters: row.Parameters}
	if out.Conversation, err = s.conversation(day, row.Conversation, row.Messages); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		digest []byte
		to     **v1alpha1.RecordedPart
	}{{row.Tools, &out.Tools}, {row.Answer, &out.Answer}} {
		if len(one.digest) == 0 {
			continue
		}
		if *one.to, err = s.partOf(day, one.digest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// conversation reads the messages of a conversation.
func (s *Store) conversation(day types.UID, of []byte, n int) ([]v1alpha1.RecordedPart, error) {
	var parts []v1alpha1.RecordedPart
	left := int64(maxAnswer)
	for none := (digest{}); len(parts) < n && len(of) == len(none) && !bytes.Equal(of, none[:]); {
		val, ok, err := s.engine.Get(requests.Key(day, append([]byte{kindConversation}, of...)...))
		if err != nil {
			return nil, err
		}
		if !ok || len(val) != 2*len(none) {
			break
		}
		p, err := s.partOf(day, val[len(none):])
		if err != nil {
			return nil, err
		}
		if p.Omitted == "" {
			left -= p.Bytes
		}
		if left < 0 {
			p = omit(p, TooLarge)
		}
		parts, of = append(parts, *p), val[:len(none)]
	}
	if len(parts) < n { // there was no room
		parts = append(parts, v1alpha1.RecordedPart{Omitted: Missing})
	}
	slices.Reverse(parts)
	return parts, nil
}

func (s *Store) partOf(day types.UID, d []byte) (*v1alpha1.RecordedPart, error) {
	key := requests.Key(day, append([]byte{kindPart}, d...)...)
	raw, ok, err := s.engine.Get(key)
	if err != nil {
		return nil, err
	}
	var p v1alpha1.RecordedPart
	if !ok {
		return &v1alpha1.RecordedPart{Omitted: Missing}, nil
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil, &CorruptError{key}
	}
	return &p, nil
}

// ExpireRequests removes the days that were over before a time, and returns how many.
func (s *Store) ExpireRequests(ctx context.Context, before time.Time) (n int, err error) {
	last := before.Unix()/secondsOfDay - 1
	err = requests.Owners(ctx, s.engine, func(day types.UID) error {
		ns, number, _ := strings.Cut(string(day), "/")
		if at, err := strconv.ParseInt(number, 10, 64); err != nil || at > last {
			return err
		}
		n++
		return s.engine.Commit(&expiry{s, ns, day})
	})
	return n, err
}

// expiry is the commit that removes a day.
type expiry struct {
	s   *Store
	ns  string
	day types.UID
}

// Need is Free: it makes room.
func (*expiry) Need() engine.Need { return engine.Free }

// Publish shows nothing.
func (*expiry) Publish() {}

// Sequence removes the rows. A request that is stored for the day afterwards, because it began long ago, begins anew.
func (e *expiry) Sequence(b engine.Batch) error {
	held, err := e.s.days.Held(string(e.day))
	if err == nil {
		_, err = e.s.totals.Held(e.ns)
	}
	if err != nil {
		return err
	}
	e.s.recent.Clear()
	return errors.Join(requests.Clear(b, e.day), e.s.days.Add(b, string(e.day), -held), e.s.totals.Add(b, e.ns, -held))
}
