"""Log in with the token of the server; the cookie holds a session, not the token."""

import hmac
import math
from collections.abc import Mapping

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.web.formatting import DAY, describe_length
from bedstone.web.forms import local_path, parse_form
from bedstone.web.frame import Pages


def login_routes(pages: Pages) -> list[BaseRoute]:
    """Return /login and /logout; nothing for a server without a token."""
    token, sessions, attempts = pages.options.token, pages.options.sessions, pages.options.attempts
    if token is None or sessions is None or attempts is None:
        return []

    def show_form(request: Request, status: int, problem: str, headers: Mapping[str, str] | None = None) -> Response:
        response = pages.render(
            request,
            "login.html",
            page="login",
            status=status,
            problem=problem,
            next_path=local_path(request.query_params.get("next", "/")),
            days=sessions.max_age // DAY,
            host=request.url.hostname or "this server",
        )
        response.headers.update(headers or {})
        return response

    async def log_in(request: Request) -> Response:
        """Show the form, or check the token that it sends unless its address has sent too many wrong ones."""
        is_sent = request.method == "POST"
        given = (await parse_form(request)).get("token", "").strip() if is_sent else ""
        address = request.client.host if request.client else ""
        if is_sent and (seconds := math.ceil(attempts.wait_seconds(address))):
            return show_form(
                request,
                429,
                f"Too many wrong tokens. Try again in {describe_length(seconds)}.",
                {"Retry-After": f"{seconds}"},
            )
        if not hmac.compare_digest(given.encode(), token.encode()):
            if is_sent:
                attempts.record_failure(address, given)
            return show_form(
                request, 401 if is_sent else 200, "Wrong token. Check it and try again." if is_sent else ""
            )
        attempts.record_success(address)
        response = RedirectResponse(local_path(request.query_params.get("next", "/")), 303)
        response.set_cookie(
            sessions.cookie,
            sessions.begin(),
            max_age=sessions.max_age,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def log_out(request: Request) -> Response:
        form = await parse_form(request)
        pages.forms.check_csrf(request, form.get("csrf"))
        await to_thread.run_sync(sessions.end, request.cookies.get(sessions.cookie, ""))
        response = RedirectResponse("/login", 303)
        response.delete_cookie(sessions.cookie, httponly=True, samesite="strict")
        return response

    return [Route("/login", log_in, methods=["GET", "POST"]), Route("/logout", log_out, methods=["POST"])]
