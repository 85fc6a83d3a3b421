"""Where a person shows the token once; a cookie remembers that, not the token."""

import hmac

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.web.frame import Pages, form_of

KEPT_SECONDS = 30 * 24 * 3600


def login_routes(pages: Pages) -> list[BaseRoute]:
    """/login and /logout; nothing where there is no token."""
    token, sessions = pages.options.token, pages.options.sessions
    if token is None or sessions is None:
        return []

    async def show(request: Request) -> Response:
        return pages.render(request, "login.html", page="login", failed=False, following=_following(request))

    async def check(request: Request) -> Response:
        form = await form_of(request)
        if not hmac.compare_digest(form.get("token", "").strip().encode(), token.encode()):
            return pages.render(
                request, "login.html", page="login", status=401, failed=True, following=_following(request)
            )
        answer = RedirectResponse(_following(request), 303)
        answer.set_cookie(
            sessions.cookie,
            sessions.begin(),
            max_age=KEPT_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def leave(request: Request) -> Response:
        form = await form_of(request)
        pages.check_csrf(request, form.get("csrf"))
        sessions.end(request.cookies.get(sessions.cookie, ""))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(sessions.cookie, httponly=True, samesite="strict")
        return answer

    return [
        Route("/login", show, methods=["GET"]),
        Route("/login", check, methods=["POST"]),
        Route("/logout", leave, methods=["POST"]),
    ]


def _following(request: Request) -> str:
    """Where to go afterwards: a page of ours and nothing else."""
    wanted = request.query_params.get("next", "/")
    return wanted if wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted else "/"
