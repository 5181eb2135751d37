"""Groups that grow: contexts, the agglomeration, the picker."""
