// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// event is one change of one key. All watches share it, including the objects decoded from it.
type event struct {
	rev  uint64
	op   byte
	cur  *entry // the new version; for a delete, only its key
	old  *entry // the version before; nil for a create
	data []byte // stored bytes of cur; nil for a delete

	oldDecoded *decoded // the object before the change, if it was in memory

	curOnce, oldOnce sync.Once
	curObj, oldObj   *sharedObject
	curErr, oldErr   error
}

// decoded sets the event's object. It must be called before anyone else has the event.
func (ev *event) decoded(obj runtime.Object) {
	ev.curOnce.Do(func() { ev.curObj = &sharedObject{obj: obj} })
}

// current returns the object after the change.
func (ev *event) current(t *topic) (*sharedObject, error) {
	ev.curOnce.Do(func() {
		obj, err := t.decode(t.db.ctx, ev.cur.key, ev.data, ev.rev)
		if err != nil {
			ev.curErr = err
			return
		}
		t.remember(ev.cur, obj)
		ev.curObj = &sharedObject{obj: obj}
	})
	return ev.curObj, ev.curErr
}

// previous returns the object before the change, with the revision of the change.
func (ev *event) previous(t *topic) (*sharedObject, error) {
	ev.oldOnce.Do(func() {
		if ev.oldDecoded != nil {
			obj := ev.oldDecoded.obj.DeepCopyObject()
			ev.oldErr = versioner.UpdateObject(obj, ev.rev)
			ev.oldObj = &sharedObject{obj: obj}
			return
		}
		data, err := t.value(ev.old)
		if err != nil {
			ev.oldErr = err
			return
		}
		obj, err := t.decode(t.db.ctx, ev.old.key, data, ev.rev)
		if err != nil {
			ev.oldErr = unreadableDeleted(ev.op, err)
			return
		}
		ev.oldObj = &sharedObject{obj: obj}
	})
	return ev.oldObj, ev.oldErr
}

// unreadableDeleted returns err. If a corrupt object was deleted, it returns an error instead that makes a
// watch cache list again rather than keep the object forever.
func unreadableDeleted(op byte, err error) error {
	if _, corrupt := errors.AsType[*CorruptObjectError](err); op != opDelete || !corrupt {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", err),
	}}
}

// sharedObject is the object that the watches of one event deliver. The API server's encoders recognize
// runtime.CacheableObject and encode it once for all of them.
type sharedObject struct {
	obj runtime.Object
	enc sync.Map // runtime.Identifier -> *encoding

	attrsOnce sync.Once
	labels    labels.Set
	fields    fields.Set
	attrsErr  error
}

type encoding struct {
	once sync.Once
	data []byte
	err  error
}

var (
	_ runtime.CacheableObject   = (*sharedObject)(nil)
	_ metav1.ObjectMetaAccessor = (*sharedObject)(nil)
)

// GetObject returns a copy that the caller may change.
func (o *sharedObject) GetObject() runtime.Object { return o.obj.DeepCopyObject() }

// GetObjectKind returns the kind of the shared object, which is read-only.
func (o *sharedObject) GetObjectKind() schema.ObjectKind { return o.obj.GetObjectKind() }

// DeepCopyObject returns a copy that shares nothing.
func (o *sharedObject) DeepCopyObject() runtime.Object {
	return &sharedObject{obj: o.obj.DeepCopyObject()}
}

// GetObjectMeta returns the metadata of the shared object, which is read-only.
func (o *sharedObject) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(o.obj)
	if err != nil {
		return nil
	}
	return m
}

// CacheEncode writes the object as encode would, calling it once per id.
func (o *sharedObject) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	v, ok := o.enc.Load(id)
	if !ok {
		v, _ = o.enc.LoadOrStore(id, &encoding{})
	}
	e, _ := v.(*encoding)
	e.once.Do(func() {
		var b bytes.Buffer
		e.err = encode(o.obj.DeepCopyObject(), &b) // encoders set the kind on the object that they are given
		e.data = b.Bytes()
	})
	if e.err != nil {
		return e.err
	}
	_, err := w.Write(e.data)
	return err
}

// matches reports whether p selects the object. Labels and fields are extracted once for all watches,
// because all of them use the resource's own function for that.
func (o *sharedObject) matches(p *storage.SelectionPredicate) bool {
	if p.ShardSelector != nil {
		ok, err := p.Matches(o.obj)
		return ok && err == nil
	}
	o.attrsOnce.Do(func() { o.labels, o.fields, o.attrsErr = p.GetAttrs(o.obj) })
	if o.attrsErr != nil {
		return false
	}
	return (p.Label == nil || p.Label.Matches(o.labels)) && (p.Field == nil || p.Field.Matches(o.fields))
}
