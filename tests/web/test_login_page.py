"""Log in and out in this process."""

from pathlib import Path

from bedstone import __version__
from support.site import make_settings, open_site

TOKEN = "open-sesame-please"


async def test_the_login_opens_the_pages_of_a_server_with_a_token(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "kb", mcp={"token": TOKEN})) as site:
        login = await site.text("/login?next=/search")
        assert 'content=""' in login  # strangers get no form token
        assert "<nav" not in login
        assert "stays logged in for 30 days" in login
        assert f"Bedstone {__version__} at <code>localhost</code>" in login
        for target, location in (
            ("/search%3Fq=x", "/search?q=x"), ("//other.example", "/"), ("https://other.example", "/"),
            ("/%5Cother.example", "/"), ("/%09/other.example", "/%09/other.example"),
        ):  # fmt: skip
            response = await site.http.post(f"/login?next={target}", data={"token": TOKEN})
            assert (response.status_code, response.headers["location"]) == (303, location)
            cookie = response.headers["set-cookie"].lower()
            assert ("httponly" in cookie, "samesite=strict" in cookie, "secure" in cookie) == (True, True, False)
        assert "Log out" in await site.text("/")
        assert (await site.http.post("/logout")).status_code == 403
        before = dict(site.http.cookies)
        out = await site.post("/logout")
        assert (out.status_code, out.headers["location"]) == (303, "/login")
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in before.items())}
        assert "<nav" not in (await site.get("/nowhere", **headers)).text  # the old cookie is worthless


async def test_a_wrong_token_is_told_at_its_field_and_too_many_have_to_wait(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "kb", mcp={"token": TOKEN})) as site:
        wrong = await site.http.post("/login", data={"token": "wrong"})
        assert wrong.status_code == 401
        assert 'aria-invalid="true"' in wrong.text
        assert '<p class="state bad" id="problem" role="alert">Wrong token. Check it and try again.</p>' in wrong.text
        answers = [await site.http.post("/login", data={"token": f"wrong {number}"}) for number in range(30)]
        last = answers[-1]
        assert last.status_code == 429
        assert "Too many wrong tokens. Try again in " in last.text
        assert int(last.headers["retry-after"]) > 0
