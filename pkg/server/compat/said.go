// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"strings"

	"k8s.io/apiserver/pkg/audit"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/models"
)

const (
	// headerLeft names the hints of a request that its Provider has no place for; see package members.
	headerLeft = "X-Platform-Left-Out"
	// headerPassed names the fallbacks that were not asked, each with the member of the request that cannot be carried to it.
	headerPassed = "X-Platform-Passed-Over"
	// maxSaid bounds a header, in bytes.
	maxSaid = 2 << 10
)

// leftOut says in the answer what is left out of a request.
func (x *exchange) leftOut(t *translated) {
	if len(t.left) > 0 {
		x.w.Header().Set(headerLeft, cut(strings.Join(t.left, ", ")))
	}
}

// passesOver reports whether a fallback cannot be asked because of an error. The answer says so, the audit event of the request, and
// the usage, where it is the request with the number.
func (x *exchange) passesOver(c models.Candidate, number int, err error) bool {
	if err == nil {
		return false
	}
	if x.h.o.Meter != nil && x.call.task == "" { // the events of a task say what was asked
		m, err := x.h.o.Meter.Start(x.r.Context(), models.Asked{
			Namespace: x.call.namespace, Provider: c.Provider.Name, Read: c.Provider, Model: c.Model, Caller: x.caller, ID: x.call.id, Candidate: number,
			Agent: x.call.query.Get("agent"), PassedOver: true,
		})
		if err == nil { // nothing was used, so the request does not depend on it
			m.End(models.NothingUsed)
		}
	}
	why := "this request"
	if p, ok := asProblem(err); ok && p.param != "" {
		why = p.param
	}
	h := x.w.Header()
	said := strings.TrimPrefix(h.Get(headerPassed)+", "+c.Provider.Name+" ("+why+")", ", ")
	h.Set(headerPassed, cut(said))
	audit.AddAuditAnnotation(x.r.Context(), "passed-over."+v1alpha1.GroupName+"/"+c.Provider.Name, why)
	return true
}

// cut bounds what a header says.
func cut(said string) string {
	if len(said) > maxSaid {
		return strings.ToValidUTF8(said[:maxSaid], "") + " …"
	}
	return said
}
