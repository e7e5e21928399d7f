// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregated runs the API server in a cluster, behind kube-apiserver, which hands it the requests of the
// group core.platform.ai. Who a caller is and what it may do the cluster says: kube-apiserver names the callers of
// requests that it proxies, and clients that come straight to this server are asked for by TokenReview; permissions
// are asked for by SubjectAccessReview. Namespaces, the configuration of admission, quotas and FlowSchemas are read
// from the cluster; admission runs here, because the cluster's own never sees objects of this server.
//
//	options.go       flags and their rules
//	delegate.go      identities and permissions
//	worker.go        whose task a worker is on
//	admission.go     the chain of admission
//	certificate.go   the serving certificate
//	identity.go      whose store is served under the APIService
//	registration.go  the APIService: the CA bundle, being found available again without delay, and what is repaired
//	standby.go       what answers while another server has the store
//	run.go           the order of starting
//
// Its ServiceAccount needs, in the cluster:
//
//	ClusterRole system:auth-delegator                              tokenreviews, subjectaccessreviews: create
//	configmaps extension-apiserver-authentication (kube-system)    get, list, watch
//	namespaces                                                     get, list, watch
//	resourcequotas                                                 get, list, watch
//	resourcequotas/status                                          update
//	admissionregistration.k8s.io: mutatingwebhookconfigurations, validatingwebhookconfigurations,
//	  validatingadmissionpolicies, validatingadmissionpolicybindings,
//	  mutatingadmissionpolicies, mutatingadmissionpolicybindings   get, list, watch
//	flowcontrol.apiserver.k8s.io: flowschemas, prioritylevelconfigurations   get, list, watch
//	flowcontrol.apiserver.k8s.io: flowschemas/status               patch
//	apiregistration.k8s.io: apiservices v1alpha1.core.platform.ai  get, list, watch, create, patch
//	pods; batch: jobs                                              get (whose task a worker is on)
//	configmaps SERVICE-ca in its own namespace                     get, list, watch, create, patch (the CA for clients
//	                                                               that come straight)
//
// Kinds that are parameters of policies need get, list and watch, too; the administrator who binds such a policy
// grants that.
package aggregated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/server"
)

const (
	// DefaultPort is where the API is served unless told otherwise.
	DefaultPort = 8443
	// DefaultService is the Service through which kube-apiserver reaches this server.
	DefaultService = "platform-apiserver"
	// DefaultLockTimeout is how long a start waits for its predecessor to leave the store.
	DefaultLockTimeout = 30 * time.Second
	// podNamespaceFile is where a pod reads its namespace.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Options of a server in a cluster.
type Options struct {
	server.Options
	// Kubeconfig reaches the cluster; empty is the pod's own ServiceAccount.
	Kubeconfig string
	// Namespace is the server's own. Default: the pod's.
	Namespace string
	// ServiceName is the Service in Namespace that kube-apiserver calls.
	ServiceName string
	// ManageAPIService keeps the APIService of the group in order, and this server from being ready while another store
	// than its own is registered there.
	ManageAPIService bool
	// TakeOver is the identity of the store that this server's may replace on the APIService; "unknown" stands for that of
	// an APIService that names none.
	TakeOver string
	// CertFile and KeyFile are the serving certificate of somebody else; empty makes one.
	CertFile, KeyFile string
	// TLSNames are further names and addresses of a certificate that is made.
	TLSNames []string
	// PriorityAndFairness shares the server among callers by the cluster's FlowSchemas.
	PriorityAndFairness bool
	// SecureProfiling serves /debug/pprof on the secure port, too.
	SecureProfiling bool

	// Ready, if set, is called once the server answers; an error stops the server.
	Ready func(ctx context.Context, i Info) error
}

// Info tells where a running server is.
type Info struct {
	// URL is the address of the API on this machine, and RESTURL that of the listener without TLS, if any.
	URL, RESTURL string
	// CA verifies the serving certificate, as PEM; nil where the certificate is somebody else's.
	CA []byte
}

// NewOptions gives the defaults.
func NewOptions() *Options {
	return &Options{
		Options:     server.Options{DataDir: "/data", BindAddress: "0.0.0.0", Port: DefaultPort, LockTimeout: DefaultLockTimeout},
		ServiceName: DefaultService, ManageAPIService: true, PriorityAndFairness: true,
	}
}

// AddFlags binds the options that an operator sets to flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.DurationVar(&o.LockTimeout, "lock-timeout", o.LockTimeout, "how long the start waits while another server uses the data folder; 0 is not at all")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file that reaches the cluster (default: the pod's own ServiceAccount)")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of this server and its Service (default: the pod's own)")
	fs.StringVar(&o.ServiceName, "service-name", o.ServiceName, "Service through which kube-apiserver reaches this server; the certificate that is made has its names")
	fs.BoolVar(&o.ManageAPIService, "manage-apiservice", o.ManageAPIService, "keep the APIService in order: register this server's store on it, write the CA of the certificate that is made into it, make it again when it is deleted, and have kube-apiserver look at this server as soon as it is ready. The server is not ready while another store is registered")
	fs.StringVar(&o.TakeOver, "take-over", o.TakeOver, "ID of the store that is registered on the APIService and gone for good, which this server's store replaces; unknown where none is named there. /readyz/registration and the log have the ID")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "serving certificate of somebody else, for instance of cert-manager, who then writes the CA into the APIService, too; read again when it changes (default: one is made in the data folder, and renewed)")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "key of --tls-cert-file")
	fs.StringSliceVar(&o.TLSNames, "tls-name", o.TLSNames, "further DNS name or IP address of the certificate that is made; repeatable")
	fs.BoolVar(&o.PriorityAndFairness, "enable-priority-and-fairness", o.PriorityAndFairness, "share this server among its callers as the cluster's FlowSchemas say, instead of by two limits of requests in flight")
	fs.BoolVar(&o.SecureProfiling, "profiling", o.SecureProfiling, "serve /debug/pprof on the secure port, to those whose role names it; --profiling-bind-address serves it on loopback")
}

// complete checks the options and fills in what follows from them.
func (o *Options) complete() error {
	if err := o.Complete(); err != nil {
		return err
	}
	if o.Namespace == "" {
		b, err := os.ReadFile(podNamespaceFile)
		if err != nil {
			return fmt.Errorf("--namespace is needed outside a pod: %w", err)
		}
		o.Namespace = strings.TrimSpace(string(b))
	}
	if msgs := validation.IsDNS1123Label(o.Namespace); len(msgs) > 0 {
		return fmt.Errorf("--namespace: %q: %s", o.Namespace, strings.Join(msgs, ", "))
	}
	if msgs := validation.IsDNS1035Label(o.ServiceName); len(msgs) > 0 {
		return fmt.Errorf("--service-name: %q: %s", o.ServiceName, strings.Join(msgs, ", "))
	}
	if o.TakeOver != "" && !o.ManageAPIService {
		return errors.New("--take-over changes the APIService, and --manage-apiservice=false leaves it to somebody else")
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file belong together")
	}
	if o.CertFile != "" && len(o.TLSNames) > 0 {
		return errors.New("--tls-name is for the certificate that is made, and --tls-cert-file gives one")
	}
	return nil
}

// client is the configuration of clients of the cluster.
func (o *Options) client() (*rest.Config, error) {
	c, err := rest.InClusterConfig()
	if o.Kubeconfig != "" {
		c, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	switch {
	case o.Kubeconfig != "" && err != nil:
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	case err != nil:
		return nil, fmt.Errorf("--kubeconfig is needed outside a pod: %w", err)
	}
	// Requests wait for what these clients are asked, so their own limit is far above what happens.
	c.QPS, c.Burst = 200, 400
	return rest.AddUserAgent(c, DefaultService), nil
}
