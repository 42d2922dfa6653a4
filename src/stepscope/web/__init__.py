"""The page's server: one WSGI app, served alone by `stepscope open` and mounted whole in TensorBoard.

    app.py          WSGI in, WSGI out: finds the route, guards, answers errors, adds headers, ETag and gzip
    routes.py       `Route`, and the list of modules whose `ROUTES` make up the site
    answers.py      what handlers return: `json_answer(value)`, `binary_answer(data, type)`, and `Refused` to raise
    site.py         `Site`: the first argument of every handler
    catalogue.py    the sessions of the logdir and their ids, found by the one finder
    opened.py       `OpenSession`: an open session, loaded in the background, with progress
    api_sessions.py api/config, api/sessions, api/sessions/ID
    api_tools.py    api/sessions/ID/tools/...
    timeline.py     api/sessions/ID/timeline/...
    api_capture.py  api/capture
    capturing.py    the captures that the page started
    static.py       the front end's files
    serving.py      the port, the browser, and the server that `stepscope open` runs
    tensorboard.py  the plugin

To add routes: write a module with `ROUTES: tuple[Route, ...]` and name it in `routes.ROUTE_MODULES`.  A handler is
`handler(site: Site, request: Request, **parts_of_the_path) -> Answer`:

    def window(site: Site, request: Request, session: str, host: str) -> Answer:
        trace = site.opened(session).trace(host)       # decoded once, kept while memory allows; raises Refused or
        ...                                            # StepscopeError, which become JSON with the right status
        return binary_answer(data, ARROW)              # ETag, 304, gzip and security headers are added for you

    ROUTES = (Route("/api/sessions/<session>/timeline/<host>/window", window),)

`trace.derived(key, compute)` keeps costly results with the trace; `with site.opened(session).working():` lets one
thread at a time compute on a session.
"""
