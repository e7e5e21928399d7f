// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/owned"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// MaxAnswerBytes bounds the answers that are kept of an owner.
const MaxAnswerBytes = 32 << 20

// answers are what calls of tools were answered.
var answers = onces{kindAnswer, kindAnswerBytes, MaxAnswerBytes}

// KeepAnswer keeps what a call of a tool of an owner was answered by an id, unless something is kept by it already. It returns when the
// answer is durable. A *quota.LimitError means that there is no room among the answers of the owner, or in the namespace.
func (s *Store) KeepAnswer(ctx context.Context, ns string, uid types.UID, id string, answer []byte) error {
	used, full, err := s.keepOnce(ctx, ns, uid, answers, id, answer)
	if full {
		err = &quota.LimitError{Limit: "bytes of answers of tools", Of: quota.OfTask, Used: used, Asked: int64(len(answer)), Most: MaxAnswerBytes}
	}
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// Answer returns the answer that is kept of an owner by an id; ok is false if there is none.
func (s *Store) Answer(_ context.Context, uid types.UID, id string) (answer []byte, ok bool, err error) {
	if owned.Bad(string(uid)) || id == "" {
		return nil, false, nil
	}
	o, done := s.hold(uid)
	defer done()
	o.RLock()
	defer o.RUnlock()
	answer, ok, err = s.engine.Get(answers.key(uid, id))
	return bytes.Clone(answer), ok, err
}
