// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The parts of an APIService that this server restores; the values of the label "field".
const (
	fieldObject   = "object"
	fieldStore    = "store"
	fieldService  = "service"
	fieldPort     = "port"
	fieldBundle   = "caBundle"
	fieldInsecure = "insecureSkipTLSVerify"
)

// newRepairs makes the counter of repairs. Every series begins at 0, since an alert sees only how a series grows.
func newRepairs() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "platform", Name: "apiservice_repairs_total",
		Help: "Parts of the APIService that somebody else changed and this server restored: object, store, service, port, caBundle, insecureSkipTLSVerify.",
	}, []string{"field"})
	for _, f := range []string{fieldObject, fieldStore, fieldService, fieldPort, fieldBundle, fieldInsecure} {
		c.WithLabelValues(f)
	}
	return c
}

// repaired tells that parts of the APIService were restored: in the log, in the metrics, and as an Event of the server's Service, as
// that of an object without namespace would be in "default", where the server has no rights.
func (r *registration) repaired(ctx context.Context, fields ...string) {
	if len(fields) == 0 {
		return
	}
	log := klog.FromContext(ctx)
	log.Info("The APIService had been changed and was restored", "name", apiServiceName(), "fields", fields)
	for _, f := range fields {
		r.repairs.WithLabelValues(f).Inc()
	}
	_, err := r.host.EventsV1().Events(r.namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: r.service + "-", Namespace: r.namespace},
		EventTime:           metav1.NewMicroTime(r.clock.Now()),
		ReportingController: "platform.ai/" + DefaultService, ReportingInstance: r.service,
		Type: corev1.EventTypeWarning, Reason: v1alpha1.ReasonAPIServiceRepaired, Action: "Repair",
		Note:      "APIService " + apiServiceName() + ": somebody changed " + strings.Join(fields, ", ") + "; restored",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: r.namespace, Name: r.service},
	}, metav1.CreateOptions{})
	if err != nil && ctx.Err() == nil {
		log.Error(err, "The Event of it could not be written")
	}
}

// portOf returns the port that an APIService has to name: the one it names if the server's Service has it, otherwise the Service's
// port "https", or its first. If the Service cannot be read, the port stays as it is.
func (r *registration) portOf(ctx context.Context, c claim) int64 {
	if c.port == r.port {
		return r.port
	}
	service, err := r.host.CoreV1().Services(r.namespace).Get(ctx, r.service, metav1.GetOptions{})
	if err != nil || len(service.Spec.Ports) == 0 {
		klog.FromContext(ctx).V(1).Info("The port of the APIService could not be compared with those of the Service", "err", err)
		return c.port
	}
	ports := service.Spec.Ports
	r.port = c.port
	if !slices.ContainsFunc(ports, func(p corev1.ServicePort) bool { return int64(p.Port) == c.port }) {
		at := max(0, slices.IndexFunc(ports, func(p corev1.ServicePort) bool { return p.Name == "https" }))
		r.port = int64(ports[at].Port)
	}
	return r.port
}
