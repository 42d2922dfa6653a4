"""Routes whose handlers are imported on first use, because their libraries are slow to import."""

from __future__ import annotations

from stepscope.web.routes import Route

TIMELINE = "/api/sessions/<session>/timeline"
_HLO = "/api/sessions/<session>/hlo"
_COMPARE = "/api/sessions/<session>/compare"
_SQL = "/api/sessions/<session>/sql"

TIMELINE_ROUTES = (
    Route(f"{TIMELINE}/tracks", "stepscope.web.timeline:get_tracks"),
    Route(f"{TIMELINE}/names/<int:page>", "stepscope.web.timeline:get_names"),
    Route(f"{TIMELINE}/steps", "stepscope.web.timeline:get_steps"),
    Route(f"{TIMELINE}/steps/<int:step>", "stepscope.web.timeline:get_step"),
    Route(f"{TIMELINE}/late", "stepscope.web.timeline:get_late"),
    Route(f"{TIMELINE}/window", "stepscope.web.timeline:get_window"),
    Route(f"{TIMELINE}/stretch", "stepscope.web.timeline:get_stretch"),
    Route(f"{TIMELINE}/events/<int:event>", "stepscope.web.timeline:get_event"),
    Route(f"{TIMELINE}/events/<int:event>/links", "stepscope.web.timeline:get_links"),
    Route(f"{TIMELINE}/search", "stepscope.web.timeline:get_search"),
    Route(f"{TIMELINE}/selection", "stepscope.web.timeline:get_selection"),
    Route(f"{TIMELINE}/slices", "stepscope.web.workbench:get_slices"),
    Route(f"{TIMELINE}/calltree", "stepscope.web.workbench:get_call_tree"),
)

ROUTES = (
    *TIMELINE_ROUTES,
    Route(f"{_HLO}/programs", "stepscope.web.hlo:get_programs"),
    Route(f"{_HLO}/graph", "stepscope.web.hlo:get_graph"),
    Route(f"{_HLO}/search", "stepscope.web.hlo:get_search"),
    Route(f"{_HLO}/text", "stepscope.web.hlo:get_text"),
    Route(f"{_HLO}/dot", "stepscope.web.hlo:get_dot"),
    Route(_SQL, "stepscope.web.api_sql:ask", "POST"),
    Route(_SQL, "stepscope.web.api_sql:stop", "DELETE"),
    Route(f"{_SQL}/schema", "stepscope.web.api_sql:schema"),
    Route("/api/over-time", "stepscope.web.api_over_time:list_watched"),
    Route("/api/over-time/<run>", "stepscope.web.api_over_time:show_watched"),
    Route("/api/over-time/<run>/tables/<section>.arrow", "stepscope.web.api_over_time:watched_arrow"),
    Route("/api/sessions/<session>/whatif", "stepscope.web.api_whatif:get_whatif"),
    Route("/api/sessions/<session>/advice/<path:advice>/source", "stepscope.web.api_source:get_source"),
    Route("/api/runs", "stepscope.web.api_compare:listed_runs"),
    Route("/api/compared", "stepscope.web.api_compare:compared_runs"),
    Route("/api/comparable", "stepscope.web.api_compare:comparable_json"),
    Route(_COMPARE, "stepscope.web.api_compare:comparison_json"),
    Route(f"{_COMPARE}/tables/<section>.arrow", "stepscope.web.api_compare:comparison_arrow"),
)
