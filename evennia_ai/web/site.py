"""The way into the staff's pages: who may see one, how it is shown, what its acts answer."""

import queue
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.module_loading import import_string
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods
from twisted.internet.defer import inlineCallbacks, maybeDeferred
from twisted.python import threadable
from twisted.python.failure import Failure

from evennia_ai.cards.container import FILE_BYTES
from evennia_ai.errors import AssistantError, Refusal
from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.staff.show import moment, private_to

if TYPE_CHECKING:
    from evennia import AccountDB

    from evennia_ai.assistant_script import AssistantScript
    from evennia_ai.background import Steps
    from evennia_ai.rag_memory.seen import Seen

NOBODY, BUILDER, ADMIN = 0, 1, 2
# Acts on pages of builders that are for admins.
ADMIN_ACTS = ("compact",)
# What a page gives to its template.
Shown = dict[str, Any]
# Searches and checks may take so long; a thread that waits forever would block a reload.
PATIENCE_S = 20.0
# What forms send besides what somebody typed: their act, and what it is about.
UNTYPED = frozenset(("act", "file", "id", "option"))
# Nothing from another host, no script or style but the files of this site, no frame around it.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Visit:
    """One request for a page, on the reactor thread."""

    account: "AccountDB"  # who asks
    is_admin: bool  # or else a builder
    assistant: "AssistantScript | None"  # whom the page is about; None for a page about all
    asked: Mapping[str, str]  # what stands in the address, as ``{"q": "boat"}`` or a message's id
    sent: Mapping[str, str]  # what a form sent; empty where nothing is to be done
    # Files that a form sent, by name; of one that is too large only the beginning.
    files: Mapping[str, bytes]

    @property
    def audience(self) -> str:
        """What may be shown: private talk to admins alone."""
        if self.is_admin:
            return STAFF
        return PUBLIC

    @property
    def seen(self) -> "Seen":
        """What may be shown of the assistant of a page that is about one."""
        return self.assistant.seen(self.audience)


@dataclass(frozen=True)
class Page:
    """A page: its address below ``ai/``, who may see it, what it shows and can do."""

    name: str  # of the address and of the template
    route: str  # django's route; ``<int:assistant>`` is an assistant's number
    least: int  # the lowest rank that may see it
    # Name of a function of this folder that takes a `Visit` and returns what the template gets, or
    # a PNG, or a Deferred of it. Only a name: before a game's first migration its addresses are
    # checked, without Evennia's classes.
    show: str
    act: str = ""  # likewise of one that carries out what a form sent, and returns a sentence on it
    acts: tuple[str, ...] = ()  # what its forms ask for

    def pattern(self) -> URLPattern:
        """The address."""
        methods = ["GET", "HEAD"]
        if self.act:
            methods.append("POST")

        @never_cache
        @csrf_protect
        @require_http_methods(methods)
        def view(request: HttpRequest, assistant: int | None = None, **parts: str) -> HttpResponse:
            response = self._answer(request, assistant, parts)
            response["Content-Security-Policy"] = CONTENT_POLICY
            response["Referrer-Policy"] = "same-origin"
            response["X-Content-Type-Options"] = "nosniff"
            return response

        return path(self.route, view, name=self.name)

    def _answer(
        self, request: HttpRequest, assistant: int | None, parts: Mapping[str, str]
    ) -> HttpResponse:
        user: Any = request.user
        if not user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        asked, sent = {**request.GET.dict(), **parts}, request.POST.dict()
        uploads = (file for file in request.FILES.values() if file.name)
        files = {str(file.name): file.read(FILE_BYTES + 1) for file in uploads}
        work = partial(self._visited, user.pk, assistant, asked, sent, files)
        try:
            head, shown = on_reactor(work)
        except AssistantError as error:
            if not sent:
                return _trouble(request, 400, str(error))
            return _refused(request, error, sent)
        except tuple(_TROUBLES) as error:
            status, text = _TROUBLES[type(error)]
            return _trouble(request, status, str(error) or text)
        if sent:
            messages.success(request, str(shown))
            return HttpResponseRedirect(request.get_full_path())
        if isinstance(shown, bytes):
            return HttpResponse(shown, content_type="image/png")
        return render(request, f"evennia_ai/{self.name}.html", {"page": self.name, **head, **shown})

    @inlineCallbacks
    def _visited(
        self,
        account_pk: int,
        assistant: int | None,
        asked: Mapping[str, str],
        sent: Mapping[str, str],
        files: Mapping[str, bytes],
    ) -> "Steps[tuple[Shown, Any]]":
        """Fires with what every template gets, and what the page shows or its act answers."""
        from evennia import AccountDB

        from evennia_ai.assistant_script import all_assistants
        from evennia_ai.staff.acts import check_owner

        account, script = AccountDB.objects.get(pk=account_pk), None
        rank, head = rank_of(account), Shown()
        if rank < self.least:
            raise PermissionError("This page is for staff.")
        if assistant is not None:
            script = next((each for each in all_assistants() if each.pk == assistant), None)
            if script is None:
                raise Http404("There is no such assistant.")
            head = {"pk": script.pk, "name": script.own_name}
        if sent:
            act = sent.get("act", "")
            if act not in self.acts or (act in ADMIN_ACTS and rank < ADMIN):
                raise Refusal("There is no such act.")
            if script is not None and self.least < ADMIN:
                check_owner(script, account)
        visit = Visit(account, rank >= ADMIN, script, asked, sent, files)
        work = import_string(f"{__package__}.{self.act if sent else self.show}")
        shown = yield maybeDeferred(work, visit)
        return {**head, "is_admin": visit.is_admin}, shown


# Fields that hold a stored time.
_TIMES = {"at", "created_at", "timestamp", "last_seen"}
_TROUBLES: dict[type[Exception], tuple[int, str]] = {
    PermissionError: (403, "This page is for staff."),
    Http404: (404, "There is no such page."),
    queue.Empty: (503, "The game is busy; try again."),
}


def plain(item: Any, **more: Any) -> dict[str, Any]:
    """A value for a template, which is rendered on another thread: its fields, and `more`.

    ``private`` says whom it is private to; it is empty for what is public. Times are to the minute.
    """
    own = {each.name: getattr(item, each.name) for each in fields(item)}
    own |= {key: moment(own[key]) for key in _TIMES & own.keys() if own[key]}
    return {**own, "private": private_to(own.get("audience", PUBLIC)), **more}


def number(text: str | None, default: int, most: int) -> int:
    """A number of the address, from 0 to `most`; the default if there is none."""
    return min(most, int(text)) if text and text.isascii() and text.isdigit() else default


def on_reactor(function: Callable[[], Any]) -> Any:
    """A function's result, computed on the reactor thread; a Deferred's, once it fires.

    Evennia's web site runs on other threads, where Attributes must not be touched. Raises what the
    function raised, and `queue.Empty` if there was no result in time; the server may be stopping.
    """
    from twisted.internet import reactor

    answers: queue.Queue[Any] = queue.Queue()

    def answer() -> None:
        maybeDeferred(function).addBoth(answers.put)

    here = threadable.isInIOThread() or not reactor.running  # type: ignore[attr-defined]
    if here:
        answer()
    else:
        reactor.callFromThread(answer)  # type: ignore[attr-defined]
    result = answers.get(block=not here, timeout=PATIENCE_S)
    if isinstance(result, Failure):
        result.raiseException()
    return result


def rank_of(account: "AccountDB") -> int:
    """What an account may see of the pages."""
    if account.is_superuser or account.check_permstring("Admin"):
        return ADMIN
    if account.check_permstring("Builder"):
        return BUILDER
    return NOBODY


def menu(request: HttpRequest) -> dict[str, Any]:
    """What the menu of the game's site needs: whether to link to these pages, asked only there."""

    def sees_assistants() -> bool:
        user: Any = getattr(request, "user", None)
        return user is not None and user.is_authenticated and rank_of(user) >= BUILDER

    return {"sees_assistants": sees_assistants}


def _refused(request: HttpRequest, error: AssistantError, sent: Mapping[str, str]) -> HttpResponse:
    """Back to the page, which says why and shows what was typed, in its field again.

    What nobody typed is on it only for the script that finds the form.
    """
    messages.error(request, str(error))
    for name, value in sent.items():
        if name != "csrfmiddlewaretoken":
            level = messages.WARNING if name in UNTYPED else messages.INFO
            messages.add_message(request, level, value, extra_tags=name)
    return HttpResponseRedirect(request.get_full_path())


def _trouble(request: HttpRequest, status: int, text: str) -> HttpResponse:
    return render(request, "evennia_ai/trouble.html", {"text": text}, status=status)
