"""From a spec and a trial to Kubernetes objects, one module per component. Pure."""
