"""What an optimizer step is allowed to do: clip policies, and the guarded step."""
