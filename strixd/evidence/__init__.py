"""What a restart would destroy: stacks, last words, counters and memory, saved before it; strixd-evidence.service.

It only reads and writes below one folder, knows no policy, and gives no prompt, no generated text and no key away.
"""
