// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
)

// LabelServing is the label of the Pod whose server has the store. The Service selects it.
const LabelServing = "platform.ai/serving"

const (
	// maxServers is how many Pods of one StatefulSet may share a store: the server's role names them.
	maxServers = 3
	// markPoll is the time between attempts to move the label.
	markPoll = 250 * time.Millisecond
)

// place is the Pod of this server among those that share a store. All of them are ready, as Pods, whether they serve or wait, because a
// rolling update, a drain and Helm wait for that. So readiness cannot say whom the Service means, and the server that has the store
// moves a label to its Pod. It does so as soon as it has opened the store, while the rest of it starts. A server that waits changes
// nothing.
type place struct {
	pods typedcorev1.PodInterface
	name string
}

// others returns the names of the other Pods of this Pod's StatefulSet: NAME-0, NAME-1 and so on, whether they exist or not.
func (p *place) others() []string {
	at := strings.LastIndexByte(p.name, '-')
	own, err := strconv.Atoi(p.name[at+1:])
	if at <= 0 || err != nil {
		return nil
	}
	var names []string
	for i := range maxServers {
		if i != own {
			names = append(names, p.name[:at+1]+strconv.Itoa(i))
		}
	}
	return names
}

// mark moves the label to this Pod.
func (p *place) mark(ctx context.Context) error {
	err := p.label(ctx, p.name, `"true"`) // first: two are better than none
	for _, name := range p.others() {
		if other := p.label(ctx, name, "null"); !apierrors.IsNotFound(other) {
			err = errors.Join(err, other)
		}
	}
	return err
}

// label sets the label of a Pod, or removes it if the value is null. A Pod that has it already is not written.
func (p *place) label(ctx context.Context, pod, value string) error {
	change := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, LabelServing, value)
	_, err := p.pods.Patch(ctx, pod, types.MergePatchType, []byte(change), metav1.PatchOptions{FieldManager: DefaultService})
	return err
}

// keep moves the label to this Pod, and tries again until that has succeeded or ctx ends.
func (p *place) keep(ctx context.Context) {
	log := klog.FromContext(ctx).WithValues("pod", p.name)
	var said string
	_ = wait.PollUntilContextCancel(ctx, markPoll, true, func(ctx context.Context) (bool, error) {
		err := p.mark(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			log.Error(err, "The Service finds this server by a label of its Pod, which could not be set; trying again", "label", LabelServing)
		}
		return err == nil, nil
	})
}
