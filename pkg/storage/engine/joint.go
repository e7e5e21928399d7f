// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

// Part is one change of a Txn that several stores make together: all of its parts become durable in one batch, or none.
type Part interface {
	// Check decides, against sequenced state, whether the part can be written. It writes nothing. The keys of two parts
	// must differ, because a part does not see what the parts before it are going to write.
	Check() error
	// Write writes the part after all parts were checked. It must not refuse.
	Write(b Batch) error
	// Abandon is called instead of Write on a part that was checked, if a later part was refused.
	Abandon()
	// Publish makes the part visible, as that of a Txn does.
	Publish()
}

// Join returns the Txn of the parts. They are checked, written and published in their order.
func Join(need Need, parts ...Part) Txn { return &joint{parts, need} }

type joint struct {
	parts []Part
	need  Need
}

// Need returns what Join was given.
func (j *joint) Need() Need { return j.need }

// Sequence checks all parts before it writes the first.
func (j *joint) Sequence(b Batch) error {
	for i, p := range j.parts {
		if err := p.Check(); err != nil {
			for _, checked := range j.parts[:i] {
				checked.Abandon()
			}
			return err
		}
	}
	for _, p := range j.parts {
		if err := p.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// Publish shows the parts.
func (j *joint) Publish() {
	for _, p := range j.parts {
		p.Publish()
	}
}
