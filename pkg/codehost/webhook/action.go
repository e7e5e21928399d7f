// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

// fillAction sets what happened, and to which labels.
//
// Gitea has a word of its own for new commits, and two for labels. All labels that one request adds and removes are one event of Gitea,
// so an event that adds some is Labeled, whatever it removes. Gitea 1.26 declares changes.added_labels and changes.removed_labels but
// fills them for its own Actions only (services/actions/notifier.go); its webhooks (services/webhook/notifier.go, IssueChangeLabels)
// leave them out. Then nobody can say what was added, and the event stays LabelUpdated without Labels.
func (p *payload) fillAction(e *Event) (err error) {
	if err := actionRule.check("action", p.Action); err != nil {
		return err
	}
	e.Action = p.Action
	switch p.Action {
	case "synchronized":
		e.Action = Synchronize
	case Labeled, Unlabeled:
		if p.Label != nil {
			e.Labels, err = names("label", []label{*p.Label}, MaxLabels)
		}
	case LabelUpdated, cleared:
		err = p.fillChanges(e)
	}
	return err
}

// cleared is Gitea's word for an event that removed all labels.
const cleared = "label_cleared"

// fillChanges sets the labels that Gitea says were added or removed.
func (p *payload) fillChanges(e *Event) (err error) {
	var c changes
	if p.Changes != nil {
		c = *p.Changes
	}
	switch {
	case p.Action == cleared:
		e.AllLabels = nil // Gitea lists those from before
		fallthrough
	case len(c.AddedLabels) == 0 && len(c.RemovedLabels) > 0:
		e.Action = Unlabeled
		e.Labels, err = names("changes.removed_labels", c.RemovedLabels, MaxLabels)
	case len(c.AddedLabels) > 0:
		e.Action = Labeled
		e.Labels, err = names("changes.added_labels", c.AddedLabels, MaxLabels)
	}
	return err
}
