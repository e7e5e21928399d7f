// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/metric"
)

const (
	// maxSkills bounds the skills that are counted apart, since a tenant may make and delete as many as it likes.
	maxSkills = 1000
	// otherSkills is under which name, in no namespace, all others are counted.
	otherSkills = "other"
)

// skillMetrics counts what runs load. It is safe for concurrent use.
type skillMetrics struct {
	*prometheus.CounterVec

	mu   sync.Mutex
	seen map[types.NamespacedName]bool
}

// showSkills registers the count; a process may run controllers again, and goes on counting.
func showSkills(r prometheus.Registerer) (*skillMetrics, error) {
	return metric.Register(r, &skillMetrics{
		CounterVec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform", Name: "skills_loaded_total",
			Help: `Skills that attempts of tasks were started with, by the name and the namespace of the Skill. After 1000 of them the rest has the name "other".`,
		}, []string{"skill", "namespace"}),
		seen: map[types.NamespacedName]bool{},
	})
}

// loaded counts the skills of an attempt that was started.
func (m *skillMetrics) loaded(skills []types.NamespacedName) {
	for _, s := range skills {
		m.count(s)
	}
}

func (m *skillMetrics) count(skill types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.seen[skill] && len(m.seen) >= maxSkills {
		skill = types.NamespacedName{Name: otherSkills}
	} else {
		m.seen[skill] = true
	}
	m.WithLabelValues(skill.Name, skill.Namespace).Inc()
}
