"""Log in with the token of the server; the cookie holds a session, not the token."""

import hmac

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages

SESSION_SECONDS = 30 * 24 * 3600


def login_routes(pages: Pages) -> list[BaseRoute]:
    """Return /login and /logout; nothing for a server without a token."""
    token, sessions = pages.options.token, pages.options.sessions
    if token is None or sessions is None:
        return []

    async def log_in(request: Request) -> Response:
        """Show the form, or check the token that it sends."""
        is_sent = request.method == "POST"
        given = (await parse_form(request)).get("token", "").strip() if is_sent else ""
        if not hmac.compare_digest(given.encode(), token.encode()):
            status, next_path = 401 if is_sent else 200, _next_path(request)
            return pages.render(
                request, "login.html", page="login", status=status, has_failed=is_sent, next_path=next_path
            )
        response = RedirectResponse(_next_path(request), 303)
        response.set_cookie(
            sessions.cookie,
            sessions.begin(),
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def log_out(request: Request) -> Response:
        form = await parse_form(request)
        pages.forms.check_csrf(request, form.get("csrf"))
        sessions.end(request.cookies.get(sessions.cookie, ""))
        response = RedirectResponse("/login", 303)
        response.delete_cookie(sessions.cookie, httponly=True, samesite="strict")
        return response

    return [Route("/login", log_in, methods=["GET", "POST"]), Route("/logout", log_out, methods=["POST"])]


def _next_path(request: Request) -> str:
    """Return where to go after the login: a page of this server only."""
    path = request.query_params.get("next", "/")
    return path if path.startswith("/") and not path.startswith("//") and "\\" not in path else "/"
