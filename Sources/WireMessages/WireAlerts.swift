package import PodcastModel

extension WireAlert {
    /// An alert of an owner, about a `subject` of the owner’s choice, an episode and a podcast, each by its ID or empty.
    ///
    /// - Parameter name: the seed of its ID: the same name gives the same alert, also after a restart of the owner.
    package init(
        _ code: String, of owner: ServiceName, named name: String, title: String, message: String,
        severity: Severity = .warning, actions: [String] = ["dismiss"], subject: String = "", episode: String = "",
        podcast: String = "", at time: Timestamp
    ) {
        self.init()
        id = AlertID.derived(from: name).text
        self.code = code
        self.owner = owner.text
        self.title = title
        self.message = message
        self.severity = severity
        self.actions = actions
        self.subject = subject
        self.episode = episode
        self.podcast = podcast
        raisedAt = time.milliseconds
    }
}

extension WireAnswerAlert {
    /// Checks the answer to an alert, of which the first one wins: whether it is to be carried out; false: it repeats the
    /// winner. Without either the alert doesn’t exist.
    ///
    /// - Throws: `alreadyAnswered`, `notFound`, or `invalidArgument` for an answer that the alert does not offer.
    package func isFirst(after winner: String?, to alert: WireAlert?) throws(Failure) -> Bool {
        if let winner {
            guard winner == action else {
                throw Failure(.alreadyAnswered, "The alert has been answered with “\(winner)”.")
            }
            return false
        }
        guard let alert else { throw Failure(.notFound, "Alert \(self.alert) no longer exists.") }
        guard alert.actions.contains(action) else {
            let actions = alert.actions.joined(separator: ", ")
            throw Failure(.invalidArgument, "“\(action)” isn’t an answer to this alert; its answers are \(actions).")
        }
        return true
    }

    /// The reply; `changed`: whether this request ended the alert.
    package func answered(changed: Bool) -> WireAlertAnswered {
        var answered = WireAlertAnswered()
        answered.alert = alert
        answered.action = action
        answered.changed = changed
        return answered
    }
}
