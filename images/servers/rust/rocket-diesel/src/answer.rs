//! Errors as Rocket's answers.

use rocket::{
    Request,
    http::Status,
    response::{Responder, Result},
};
use serving::Error;

/// An error that becomes an answer: the client learns its kind, the log its text.
#[derive(Debug)]
pub struct Refusal(Error);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl<'request> Responder<'request, 'static> for Refusal {
    fn respond_to(self, request: &'request Request<'_>) -> Result<'static> {
        let (status, text) = self.0.answer();
        (Status::new(status), text).respond_to(request)
    }
}
