// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// policyDelay is how long a server may not count a change of a policy after the time that the change has: it looks for changes each
// second, and the time is in whole seconds.
const policyDelay = 3 * time.Second

// awaitPolicies waits until the server counts the newest change of its policies. Whoever may not list them does not wait, and
// a deletion leaves nothing that shows it.
func awaitPolicies(ctx context.Context, clock clock.Clock, c rest.Interface) error {
	var newest time.Time
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		var list metav1.PartialObjectMetadataList
		raw, err := c.Get().AbsPath("/apis/admissionregistration.k8s.io/v1", resource).DoRaw(ctx)
		if err != nil || json.Unmarshal(raw, &list) != nil {
			continue
		}
		for i := range list.Items {
			m := &list.Items[i].ObjectMeta
			if m.CreationTimestamp.After(newest) {
				newest = m.CreationTimestamp.Time
			}
			for _, f := range m.ManagedFields {
				if f.Time != nil && f.Time.After(newest) {
					newest = f.Time.Time
				}
			}
		}
	}
	left := min(newest.Add(policyDelay).Sub(clock.Now()), policyDelay) // the clocks may differ
	if left <= 0 {
		return ctx.Err()
	}
	select {
	case <-clock.After(left):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
