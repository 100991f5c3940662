"""One request and its outcome, for every service.

``calls``           send once and classify: committed, refused, not sent or in doubt; read until answered
``settle``          send a write until its outcome is known
``unsent``          a write that was not sent, because what has to be read before it could not be
``verdicts``        what a look at the resource says about a write in doubt
``commits``         tells that a write is committed, so that no interruption denies it
``lineage``         the last writes of a resource, kept in its metadata, by which an outcome is known
``applied_keys``    the keys whose changes were applied to a resource, in few bytes each
``service_codes``  the codes of the service that say more than their status
``service_errors``  what a refusal says → one of our errors
``conflicts``       what an answer 409 or 412 means
``pool``            writes, a few at a time, and how they ended
``deadline``        the time that is left
``service_copies``  copies that the service makes in its own time
``copied_sources``  the source of a copy
``polling``         look again and again until something is as wanted
``written``         what a write did
``existing``        what a create finds where something is already
``access_policies``  access policies without a version in the service: compared, then written
``xml_bodies``      access policies as they are sent
``sources``         the content of a write: a file or a pipe, read in pieces
``unchanged_files``  a local file as such content, which does not change while it is read
``contents``        how many items a listing has
``ranges``          several ranges of one version, asked for at a time
``shares``          what the jobs of one process may have at the same time
``delivery``        content to a stream, or atomically to a file
``denials``         why the service refused these credentials
``sas_needs``       the permissions that a SAS needs for a request
``service_dates``   the service's clock, as its answers tell it
``service_clock``   the service's own time, asked for once
"""
