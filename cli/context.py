"""The environment of a command: the account, the cache, the conditions and the output of this run."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from azguard import address
from azguard.accounts.account import Account, Auth, Target, read_sas
from azguard.address import Kind, Location
from azguard.cache.scope import find_job, find_scope
from azguard.cli.errors import Facts, SharedState
from azguard.cli.output.results import Output
from azguard.errors import AzguardError, ConfigError, UsageError
from azguard.folders import Folders
from azguard.frozen import frozen
from azguard.requests.deadline import ANSWER_SECONDS, PATIENCE_SECONDS, Deadline
from azguard.times import iso, parse_duration, span

if TYPE_CHECKING:
    from azguard.cache.copies import Copy
    from azguard.cache.etag_cache import EtagCache
    from azguard.cache.reads import Reads
    from azguard.guards.resolve import Conditions
    from azguard.guards.versions import SeenVersion
    from azguard.leases.recorded import LeaseRecords
    from azguard.locks.hold_records import HoldRecords
    from azguard.wire.rows import Operation


@frozen
class Environment:
    """One run of one command. Everything in it is made when first asked for."""

    shared: Mapping[str, Any]
    operation: "Operation | None"
    command: str
    environ: Mapping[str, str]
    argv: tuple[str, ...] = ()
    #: The names of the options in the order that they were typed.
    order: Sequence[str] = ()
    takes_key: bool = False
    common: SharedState = field(default_factory=SharedState)
    #: What is to be done once the result is told.
    once_told: list[Callable[[], object]] = field(default_factory=list)

    @classmethod
    def of(cls, facts: Facts) -> "Environment":
        """Return the environment of a run that is about to begin."""
        common = facts.common or SharedState()
        return cls(
            facts.shared,
            facts.operation,
            facts.command,
            os.environ,
            facts.argv,
            facts.order,
            facts.takes_key,
            common,
            facts.once_told,
        )

    @cached_property
    def out(self) -> Output:
        """Return where results and hints go."""
        return Output.of(self.shared, self.environ, self.command)

    @cached_property
    def folders(self) -> Folders:
        """Return where azguard keeps things on this machine.

        Raises:
            ConfigError: another user can have put something there.
        """
        return self.common.keep(("folders",), self._find_folders)

    def _find_folders(self) -> Folders:
        found = Folders.of(self.environ)
        found.check()
        return found

    @cached_property
    def scope(self) -> str:
        """Return whose reads guard this run's writes."""
        named = self.shared.get("scope")
        return self.common.keep(("scope", named), lambda: find_scope(named, self.environ))

    @cached_property
    def job(self) -> str | None:
        """Return the CI job of this run, as records name it; None outside of CI."""
        return find_job(self.environ)

    @cached_property
    def holds(self) -> "HoldRecords":
        """Return the records on this machine of locks that are held beyond one command."""
        from azguard.locks.hold_records import HoldRecords

        return HoldRecords(self.folders.holds.absolute())

    @cached_property
    def cache(self) -> "EtagCache":
        """Return the ETag cache of this scope; damaged or read-only, it still answers, and a warning is shown."""
        from azguard.cache.etag_cache import EtagCache

        folder, scope, job, warn = self.folders.cache, self.scope, self.job, self.out.warn
        opened = self.common.keep(
            ("cache", folder),
            lambda: EtagCache.open(folder, scope, warn=warn, now=lambda: datetime.now(UTC), job=job),
        )
        return opened.for_scope(scope)

    @cached_property
    def reads(self) -> "Reads":
        """Return the reads of this scope, which guard this run's writes and record the run's downloads."""
        from azguard.cache.reads import Reads

        return Reads(
            open_cache=lambda: self.cache,
            command=self.command,
            outer_lease=self._find_outer_lease,
        )

    @cached_property
    def lease_records(self) -> "LeaseRecords":
        """Return where this scope writes down its leases."""
        from azguard.cli.words import leases
        from azguard.leases.recorded import LeaseRecords

        return LeaseRecords(
            self.reads,
            tell_given_up=lambda target, seconds: self.out.warn(leases.tell_given_up(target, seconds)),
            tell_left=lambda target: self.out.warn(leases.tell_left(target)),
        )

    def release(self) -> None:
        """Drop what refers to this run again, so that its memory is freed when it ends, without the collector."""
        for name in ("reads", "lease_records"):
            vars(self).pop(name, None)

    def _find_outer_lease(self, target: Target) -> str | None:
        if "AZGUARD_LOCK" not in self.environ:
            return None  # What reads the variables of locks need not be loaded.
        from azguard.locks import environment

        return environment.find_lease_id(target, self.environ)

    @cached_property
    def account(self) -> Account:
        from azguard.cli.input import accounts

        folders, shared = self.folders, self.shared
        found = self.common.keep(("account", *accounts.list_given(shared)), lambda: self._choose_account(folders))
        return self._encrypt(found)

    def _encrypt(self, account: Account) -> Account:
        """Return an account whose blobs are encrypted as this run says.

        Raises:
            ConfigError: the key is malformed, or cannot be read.
            UsageError: the operation makes a blob, and takes no key.
        """
        from azguard.cli.input import accounts

        encryption = accounts.find_encryption(self.shared, self.environ) if self.takes_key else {}
        if not encryption:
            return account
        if self.operation is not None and self.operation.drops_encryption:
            raise UsageError(
                f"{self.operation.title} takes no encryption key and no scope: it would make a blob without them",
                hint="get the blob with its key, and put it; without a key: unset AZGUARD_ENCRYPTION_KEY",
            )
        account.shared["tell_unencrypted"] = self.out.warn
        return replace(account, encryption=encryption)

    def _choose_account(self, folders: Folders) -> Account:
        from azguard.cli.input import accounts

        found = accounts.choose(self.shared, self.environ, folders.profiles, partial(accounts.local_emulator, folders))
        if overruled := accounts.find_overruled(self.shared, self.environ, found):
            self.out.warn(overruled)
        self._warn_of_http(found)
        return found

    def _warn_of_http(self, account: Account) -> None:
        from azguard.cli.input import accounts

        if unencrypted := accounts.find_unencrypted(account):
            self.out.warn(unencrypted)

    @property
    def account_if_known(self) -> Account | None:
        """Return the account this run means, None if none is named or one is named wrongly."""
        try:
            return self.account
        except AzguardError:
            return None

    @cached_property
    def located(self) -> dict[str, Target]:
        """Return the resources that this run is about, by address."""
        return {}

    @cached_property
    def deadline(self) -> Deadline:
        """Return how long this run keeps trying."""
        return self.patience(self.timeout, PATIENCE_SECONDS)

    @property
    def timeout(self) -> float | None:
        """Return the seconds of --timeout; None if it was not typed."""
        typed: float | None = self.shared.get("timeout")
        return typed

    def patience(self, timeout: float | None, otherwise: float) -> Deadline:
        """Return a deadline that begins now, of so many seconds or as long as --timeout says."""
        answer_seconds = _read_answer_seconds(self.environ)
        clock = self.common.clock
        made = Deadline(otherwise, clock, answer_seconds=answer_seconds)
        deadline = made if timeout is None else Deadline.strict(timeout, answer_seconds, clock)
        if timeout is not None and (account := self.account_if_known) is not None:
            account.limit_login(deadline.seconds)
        return deadline

    def location(self, text: str, kind: Kind | None = None) -> Location:
        """Return the location of an address or URL; the account in use may tell which service a URL is of.

        Raises:
            UsageError: the text is malformed, or of another kind than the command takes.
        """
        return address.parse(text, kind, self._endpoints)

    def find_service(self, text: str) -> str | None:
        """Return the service that a URL is of: blob, table, queue or file; None if it tells none, or is no URL."""
        return address.find_service(text, self._endpoints)

    def _endpoints(self) -> Mapping[str, str]:
        # A URL with a SAS needs no account; what needs one says what is wrong with it.
        account = self.account_if_known
        return {} if account is None else account.endpoints

    def locate(self, text: str, kind: Kind | None = None, *, writable: bool = False) -> Target:
        """Return the resource an address or URL names, in its account.

        Raises:
            UsageError: the address is malformed, or names a snapshot where something is to be written.
        """
        location = self.location(text, kind)
        if writable and (location.address.snapshot or location.address.version):
            raise UsageError(
                f"{location.address.short} is a snapshot or version, which cannot be written",
                hint="leave ?snapshot=… or ?versionid=… out",
            )
        account = self.account.at(location) if location.sas is None else self.find_account_of_url(location)
        target = Target(account, location.address)
        self.warn_of_end(target, self.deadline)
        self.located[str(target.address)] = target
        return target

    def find_account_of_url(self, location: Location) -> Account:
        """Return the account that a URL with a SAS is of; one that goes over http to another machine is warned of."""
        from azguard.cli.input import accounts

        plain = self.common.keep(("url",), lambda: Account("", {}, Auth.ANONYMOUS))
        found = self._encrypt(accounts.accept_given(plain, self.shared, self.environ)).at(location)
        self._warn_of_http(found)
        return found

    def warn_of_end(self, target: Target, deadline: Deadline) -> None:
        """Warn if the credential of a target ends before a deadline."""
        if target.account.auth.may_end:
            warn_of_end(target, deadline.seconds, self.out.warn_once)

    def conditions(
        self,
        target: Target,
        copy: "Copy | SeenVersion | None" = None,
        operation: "Operation | None" = None,
        lease_id: str | None = None,
    ) -> "Conditions":
        """Return an operation's conditions, from this run's options or its own lease id and from this scope's reads.

        ``copy`` is the file that is written, or the version that the written content came with.
        """
        from azguard.guards.requested import RequestedConditions

        which = operation or self.operation
        assert which is not None
        asked = RequestedConditions.of(self.shared if lease_id is None else {**self.shared, "lease_id": lease_id})
        return self.reads.resolve_conditions(which, asked, target, copy)


def _read_answer_seconds(environ: Mapping[str, str]) -> float:
    """Return how long a request that was sent may go unanswered, in seconds."""
    name = "AZGUARD_WRITE_TIMEOUT"
    if name not in environ:
        return ANSWER_SECONDS
    try:
        seconds = parse_duration(environ[name], name)
    except UsageError as error:
        from azguard.cli.words.hints import in_words  # hundreds of words, for errors alone

        known = in_words(error)
        raise known.as_kind(ConfigError, hint=f"{known.hint}; 20s is the default", reason=None) from None
    if seconds <= 0:
        raise ConfigError(f"{name} must be more than nothing", hint="unset it: 20s is the default")
    return seconds


def warn_of_end(target: Target, seconds: float, tell: Callable[[str], None]) -> None:
    """Warn by ``tell`` if the credential that proves who is asking ends within so many seconds.

    Of a login that is known only when it is asked for its first token, so the warning comes then. This machine's clock
    may be wrong, so the work begins all the same; of what has ended already the service itself says so.
    """
    until = time.time() + seconds
    if target.account.auth is Auth.SAS:
        ends = read_sas(target.account.secret or "").ends
        if ends is not None:
            _warn(tell, "the SAS", ends.timestamp(), until, "make one that is valid for longer")
    elif target.account.auth is Auth.LOGIN:
        target.account.watch_login(lambda ends, reason: _warn_of_token(tell, ends, until, reason))


def _warn_of_token(tell: Callable[[str], None], ends: float, until: float, reason: str) -> None:
    from azguard.cli.words.hints import HINTS  # hundreds of words, for errors and warnings alone

    _warn(tell, "the login's token", ends, until, str(HINTS[reason]))


def _warn(tell: Callable[[str], None], what: str, ends: float, until: float, way_out: str) -> None:
    left = ends - time.time()
    if left > 0 and ends <= until:
        times = f"ends at {_format_time(ends)}, in {span(left)}"
        tell(f"{what} {times}; this may last until {_format_time(until)}; {way_out}")


def _format_time(moment: float) -> str | None:
    return iso(datetime.fromtimestamp(int(moment), UTC))
