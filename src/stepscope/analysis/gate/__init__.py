"""Budgets on figures of a session: are they kept, and is what breaks them more than noise?"""
